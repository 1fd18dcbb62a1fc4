"""Texts of DataFusion that have another meaning in Spark; only for scripts in such a dialect.

`queries.py` is the file to start at.
"""
