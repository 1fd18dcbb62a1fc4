"""Files of the state directory for tasks on machines that do not share it.

The driver serves them for the time of a run. Imported by `sources`, `lookups`, `updating` and
`tables`, and from outside by `runtime`. Start at `server.py`.
"""
