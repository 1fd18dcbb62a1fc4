"""The control plane: one process that looks after many pipelines, with an API.

Owns the store of wishes, versions, users and the audit, and the processes of runs. Each pipeline
runs as its own `penstock run`: the lock of its state directory is the truth about it, and the store
holds wishes only. No module of a run imports this package. Start reading in `api/application.py`
and `supervision/supervisor.py`.
"""
