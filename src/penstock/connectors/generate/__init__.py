"""Rows out of nothing: for first steps, tests and load."""

from penstock.connectors.generate.source import GenerateSource, GenerateSourceConfig

__all__ = ["GenerateSource", "GenerateSourceConfig"]
