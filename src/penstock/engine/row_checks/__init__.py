"""Checks of rows in front of expressions that may fail, and the error of each failing row.

Imported by `build`, `sources`, `lookups`, `updating` and `failures`. Start at `checked_plan.py`.
"""
