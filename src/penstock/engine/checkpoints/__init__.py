"""The content of checkpoints: offsets, batches in progress, and the schemas of the state.

Imported by `tasks` and the packages above. Start at `offset_log.py`.
"""
