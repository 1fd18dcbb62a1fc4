"""Rewrites of windowed and distinct aggregates, which Spark computes wrongly or slowly as written.

Imported by `updating`, `derivation`, `start` and `checks`. Start at `window_bounds.py`.
"""
