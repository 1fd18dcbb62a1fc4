"""Reading of sources in tasks, as Spark's data source and as readers of a pipeline.

Imported by `late`, `watermarks`, `tables`, `derivation`, `build` and `failures`. Start at
`datasource.py`; the way of a payload to a row is in `source.py`.
"""
