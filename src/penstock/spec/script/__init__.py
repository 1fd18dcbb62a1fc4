"""SQL scripts: statements that define sources, transforms and sinks, read as a document.

`front_end.py` and `document.py` are the files to start at. The words of other systems are in
`spec.dialects`.
"""
