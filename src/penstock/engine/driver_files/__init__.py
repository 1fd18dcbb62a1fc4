"""Files of the state directory for tasks on machines that do not share it.

The driver serves them for the time of a run. Start at `server.py`.
"""
