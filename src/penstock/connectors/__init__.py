"""Connectors, one package for each outside system, found by entry point."""
