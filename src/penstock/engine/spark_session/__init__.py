"""The Spark session of a run and its Java: start, settings, memory, end.

Imported by `tasks` and `updating`, and from outside by `app`, `runtime`, `testing` and `cli`. Start
at `session.py`.
"""
