"""Lookup tables in joins: read again during a run, or looked up by key.

Imported by `analysis`, `updating` and `tables`. Start at `lookup_joins.py`.
"""
