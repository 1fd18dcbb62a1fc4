"""Worker processes, which read pipelines for the server.

A worker reads files, variables and secrets, and may run Python code of a pipeline. The server does
none of this itself. `operations.py` has the operations of a worker, `pool.py` the processes.
"""
