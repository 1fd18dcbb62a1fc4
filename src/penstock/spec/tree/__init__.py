"""The tree of a pipeline file, which each front end builds: nodes with locations, and documents."""
