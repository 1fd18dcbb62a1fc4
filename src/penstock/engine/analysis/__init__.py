"""Spark's analysis of SQL: its errors at their place in the user's file, columns and decisions.

Imported by `tables`, `derivation`, `build` and `checks`. Start at `errors.py`.
"""
