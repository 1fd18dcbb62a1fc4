"""Tables of SQLite databases."""

from penstock.connectors.sqlite.sink import SqliteSink
from penstock.connectors.sqlite.source import SqliteSource

__all__ = ["SqliteSink", "SqliteSource"]
