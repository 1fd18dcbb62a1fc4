"""Execution of plans on Spark.

The way of a query is in the modules of this package: `build.py` makes its DataFrames (with
`derivation.py` for transforms and `tables.py` for tables), `start.py` starts it, and `batch.py`
writes each of its batches. Each package owns one concern, and its docstring names its importers.
Imports go down the layers that `pyproject.toml` lists. Outside of the engine, `runtime`, `testing`,
`checks`, `app` and `cli` import it.
"""
