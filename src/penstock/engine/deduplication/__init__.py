"""Deduplication within a span of event time.

Imported by `derivation`, `batch` and `start`, and from outside by `runtime`. Start at `plan.py`;
the decision on the rows of a batch is in `kept_rows.py`.
"""
