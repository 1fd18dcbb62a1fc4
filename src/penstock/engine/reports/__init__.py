"""Reports of tasks: dead letters, counts, late candidates and failing rows, as files of the driver.

Imported by `tasks`, `row_checks` and `batch`, and from outside by `runtime`. Start at `report.py`,
which tasks write; the runtime opens the `inbox.py` of a run.
"""
