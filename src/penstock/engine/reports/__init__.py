"""Reports of tasks: dead letters, counts, late candidates and failing rows, as files of the driver.

The tasks in `tasks/` and `row_checks/` write reports, start at `report.py`. The runtime opens the
`inbox.py` of a run.
"""
