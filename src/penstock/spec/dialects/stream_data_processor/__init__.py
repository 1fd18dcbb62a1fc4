"""stream-data-processor: graphs of producers, nodes and consumers as pipelines.

Its own graphs are C++. A file states the same graph in YAML, with the names of its options.
`front_end.py` is the file to start at.
"""
