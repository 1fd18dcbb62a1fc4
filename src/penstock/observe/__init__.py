"""Metrics of running pipelines."""
