"""Options of the MySQL source and sink."""

from __future__ import annotations

from typing import ClassVar

from penstock.sdk import PositiveDuration
from penstock.sdk.database import DatabaseSinkConfig, TableSourceConfig
from penstock.sdk.database.config import ServerConfig


class ConnectionConfig(ServerConfig):
    schemes: ClassVar[tuple[str, ...]] = ("mysql", "mariadb")
    default_port: ClassVar[int] = 3306

    url: str
    """The database, as `mysql://HOST:PORT/DATABASE`."""
    timeout: PositiveDuration = 300.0
    """The time for which a statement waits for locks. The connection is closed 10 seconds after
    this time without a response."""


class MysqlSourceConfig(ConnectionConfig, TableSourceConfig):
    pass


class MysqlSinkConfig(ConnectionConfig, DatabaseSinkConfig):
    pass
