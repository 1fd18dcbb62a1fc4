"""Sinks that start within existing queries: their first offsets and the rows before these.

Start at `backfill.py`.
"""
