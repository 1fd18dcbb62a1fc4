"""Taps: copies of some rows of a node of a running pipeline, for listeners.

A listener asks for rows by a file in the state directory, `files.py`. The run looks for requests
once a second and copies the first rows of a batch, `run_taps.py`. `listener.py` is the other end.
"""
