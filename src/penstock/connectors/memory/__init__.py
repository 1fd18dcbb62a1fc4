"""Memory: a source of rows of the pipeline file, and a sink that stores rows in the process."""

from penstock.connectors.memory.sink import MemorySink, clear, tables
from penstock.connectors.memory.source import MemorySource

__all__ = ["MemorySink", "MemorySource", "clear", "tables"]
