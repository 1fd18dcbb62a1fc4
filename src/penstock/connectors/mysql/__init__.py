"""Tables of MySQL and MariaDB databases."""

from penstock.connectors.mysql.sink import MysqlSink
from penstock.connectors.mysql.source import MysqlSource

__all__ = ["MysqlSink", "MysqlSource"]
