"""Tables of DuckDB databases."""

from penstock.connectors.duckdb.sink import DuckdbSink
from penstock.connectors.duckdb.source import DuckdbSource

__all__ = ["DuckdbSink", "DuckdbSource"]
