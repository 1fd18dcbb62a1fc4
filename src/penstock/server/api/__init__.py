"""The HTTP API of the server, under `/api/v1`.

`application.py` makes the application, `security.py` authenticates and authorizes every request,
`errors.py` answers with the errors of Penstock. Each other file has the routes of one subject.
"""
