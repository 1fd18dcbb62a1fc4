"""Updating queries: state of rows by key, and the changes of their results in each batch.

Imported by `derivation`, `failures`, `kept_plans` and `batch`. Start at `batch.py`.
"""
