"""Updating queries: state of rows by key, and the changes of their results in each batch.

Imported by `tables`, `deduplication`, `derivation`, `failures`, `kept_plans`, `batch` and `checks`,
and from outside by `runtime`. Start at `batch.py`.
"""
