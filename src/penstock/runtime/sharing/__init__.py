"""Sharing: one process, the host, runs several pipelines in one Spark session.

`directory.py` is the protocol between the host and the server that starts its runs. `host.py` is
the loop of the host, `spark.py` the session, `modules.py` the Python modules of its pipelines.
"""
