"""Handlers: functions over Arrow record batches with roles and groups, as in stream-data-processor.

`handler.py` has the interface, and `metadata.py` the roles of columns and the group of a batch.
Each other file with the name of a handler has its contract. `registry.py` lists the handlers by
name. Handlers use neither Spark nor the network.
"""
