"""Handlers: functions over Arrow record batches with roles and groups, as in stream-data-processor.

`handler.py` has the interface, and `metadata.py` the roles of columns and the group of a batch.
Each handler is a file with its contract. Handlers use neither Spark nor the network. The transform
`threshold` applies one in Spark, and `penstock sdp` runs cases of all.
"""
