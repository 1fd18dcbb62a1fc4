"""The language server, by pygls: the language service for editors, over standard input and output.

`server.py` has the requests of clients. Texts are checked in processes of their own
(`penstock.server.workers`): a text that takes too long, or ends its process, ends no server.
"""
