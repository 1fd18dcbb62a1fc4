"""Code of tasks that sources, transforms and sinks share: context, dead letter files, limits.

Imported by the packages above. Start at `task.py` and `dead_letter_writer.py`.
"""
