"""The YAML front end: YAML files, includes, variables and overrides to data with locations."""
