"""The SQL of pipelines as Spark SQL: windows of event time, and the translation of whole queries.

Owns `tumble`, `hop`, `session` and `calendar_window`, event times, joins of windows and aggregates
over collected rows. `translate.py` applies the rules of `sql.datafusion`, and `bind.py` completes a
query by the relations that it reads.
"""
