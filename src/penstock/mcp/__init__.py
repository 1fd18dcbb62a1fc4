"""Tools for assistants by the Model Context Protocol, on a directory or over a server.

`tools.py` has the tools, `local.py` and `remote.py` the pipelines that they work on. Answers are
bounded, without known secrets, and nothing is written unless writes are allowed.
"""
