"""The Spark session of a run and its Java: start, settings, memory, end.

Imported by `tasks`, `reports`, `sinks`, `sources`, `lookups`, `updating` and `start`, and from
outside by `app`, `runtime`, `testing`, `deploy`, `server` and `cli`. Start at `session.py`.
"""
