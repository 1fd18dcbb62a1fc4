"""The YAML front end: YAML files and JSON files to documents, and pipelines to YAML text."""
