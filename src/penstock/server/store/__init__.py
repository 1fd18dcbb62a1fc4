"""The store of the server: pipelines and their versions, users, tokens and the audit.

SQLite by default, PostgreSQL by a URL, both through SQLAlchemy Core. `tables.py` has the tables,
`database.py` opens the store.
"""
