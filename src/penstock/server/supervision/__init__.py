"""Supervision: the processes of runs are as the store wishes.

`supervisor.py` is the loop, `restart_policy.py` decides, `run_process.py` starts a process and
finds those that an earlier server has started. Runs are never children that die with the server.
"""
