"""Parts that the connectors of lake tables share: sources of versions, data files, commits and
compaction. Imported by `connectors/delta` and `connectors/iceberg`. Start at `source.py` and
`commits.py`."""
