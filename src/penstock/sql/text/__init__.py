"""The text of SQL: tokens, brackets, calls, quotes, and edits that keep positions.

`tokens.py` is the only module that uses sqlglot's tokenizer; `sql.py` is the file to start at.
Syntax trees are in `sql.parsing`.
"""
