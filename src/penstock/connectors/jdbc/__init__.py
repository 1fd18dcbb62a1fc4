"""Tables of databases with a JDBC driver."""

from penstock.connectors.jdbc.sink import JdbcSink
from penstock.connectors.jdbc.source import JdbcSource

__all__ = ["JdbcSink", "JdbcSource"]
