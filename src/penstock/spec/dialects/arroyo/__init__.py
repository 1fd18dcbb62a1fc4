"""The dialect of Arroyo: its connectors, options, types, defaults, queries and Python functions.

`dialect.py` is the file to start at. Only the registries in `spec.dialects` import this package.
"""
