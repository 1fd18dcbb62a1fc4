"""Lookup tables in joins: read again during a run, or looked up by key. Checks of dynamic tables.

Imported by `analysis`, `updating`, `tables`, `derivation` and `batch`, and from outside by
`runtime`. Start at `lookup_joins.py`, and for checks at `table_checks.py`.
"""
