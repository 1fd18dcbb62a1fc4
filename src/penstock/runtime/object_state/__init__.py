"""State in an object store: a local copy of the files, and a lease in place of a file lock.

Start at `mirror.py`.
"""
