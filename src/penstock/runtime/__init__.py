"""A run of a pipeline: state, dead letters, supervision."""
