"""Writing of the rows of a batch to a sink, in tasks, and the failures of sinks.

Imported by `sources`, `failures` and `batch`. Start at `sink.py`.
"""
