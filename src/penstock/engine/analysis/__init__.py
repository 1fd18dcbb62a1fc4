"""Spark's analysis of SQL: its errors at their place in the user's file, columns and decisions.

Imported by `tables`, `derivation`, `build` and `checks`, and from outside by `checks`, `cli` and
`runtime`. Start at `errors.py`.
"""
