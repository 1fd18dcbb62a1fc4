"""Reading of sources in tasks, as Spark's data source and as readers of a pipeline.

Imported by `late`, `lookups`, `watermarks`, `tables`, `derivation`, `build`, `failures`, `batch`,
`start` and `checks`, and from outside by `runtime`, `testing` and `pyspark_penstock`. Start at
`datasource.py`; the way of a payload to a row is in `source.py`.
"""
