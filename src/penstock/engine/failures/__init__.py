"""Rows of a batch on which SQL fails: found, divided from the valid rows, and written as dead
letters with their place.

Imported by `batch` and `start`, and from outside by `runtime`. Start at `separation.py`;
`bisect.py` finds rows that no check finds.
"""
