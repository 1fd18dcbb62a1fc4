"""Live looks at pipelines: previews of drafts, tests and trials of dead letters.

Worker processes with a warm Spark session run drafts. `session_operations.py` has the operations,
`session_worker.py` the process, and `session_pool.py` the pool.
"""
