"""Writing of the rows of a batch to a sink, in tasks, and the failures of sinks.

Imported by `sources`, `failures`, `sink_job` and `batch`, and from outside by `runtime`. Start at
`sink.py`.
"""
