"""Handlers: functions over Arrow record batches with roles and groups, as in stream-data-processor.

`handler.py` has the interface, and `metadata.py` the roles of columns and the group of a batch.
Each handler is a file with its contract. Handlers use neither Spark nor the network. `stream.py`
applies handlers to rows whose division into batches has no meaning. The transforms `handlers` and
`threshold` apply handlers in Spark, and `penstock sdp` runs cases of all.
"""
