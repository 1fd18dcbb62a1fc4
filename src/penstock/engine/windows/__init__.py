"""Rewrites of windowed and distinct aggregates, which Spark computes wrongly or slowly as written.

Imported by `derivation`, `start` and `checks`. Start at `window_bounds.py`.
"""
