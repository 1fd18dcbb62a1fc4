"""Checks of a whole plan before its start: columns, patterns, streams, and existing state.

Imported from outside by `app`, `runtime` and `testing`. Start at `column_types.py`.
"""
