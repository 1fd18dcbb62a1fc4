"""Generated rows, for first steps, tests and load."""

from penstock.connectors.generate.config import GenerateSourceConfig
from penstock.connectors.generate.source import GenerateSource

__all__ = ["GenerateSource", "GenerateSourceConfig"]
