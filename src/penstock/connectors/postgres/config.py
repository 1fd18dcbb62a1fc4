"""Options of the PostgreSQL source and sink."""

from __future__ import annotations

from typing import ClassVar

from penstock.sdk.database import DatabaseSinkConfig, TableSourceConfig
from penstock.sdk.database.config import ServerConfig


class ConnectionConfig(ServerConfig):
    schemes: ClassVar[tuple[str, ...]] = ("postgresql", "postgres")
    default_port: ClassVar[int] = 5432

    url: str
    """The database, as `postgresql://HOST:PORT/DATABASE`."""


class PostgresSourceConfig(ConnectionConfig, TableSourceConfig):
    pass


class PostgresSinkConfig(ConnectionConfig, DatabaseSinkConfig):
    pass
