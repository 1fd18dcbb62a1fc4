"""Checks of rows in front of expressions that may fail, and the error of each failing row.

Imported by `sources`, `late`, `lookups`, `updating`, `build`, `failures`, `batch` and `start`, and
from outside by `runtime`. Start at `checked_plan.py`.
"""
