"""Cases of handlers: input batches and the output of a handler, as `penstock sdp` runs them.

`case_file.py` reads a file, `handlers.py` has the options of each handler, `run.py` runs cases.
"""
