"""Options of the MySQL source and sink."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from penstock.sdk import PositiveDuration
from penstock.sdk.database import DatabaseSinkConfig
from penstock.sdk.database.changes import ChangesConfig
from penstock.sdk.database.config import ServerConfig


class ConnectionConfig(ServerConfig):
    schemes: ClassVar[tuple[str, ...]] = ("mysql", "mariadb")
    default_port: ClassVar[int] = 3306

    url: str
    """The database, as `mysql://HOST:PORT/DATABASE`."""
    timeout: PositiveDuration = 300.0
    """The time for which a statement waits for locks. The connection is closed 10 seconds after
    this time without a response."""


class MysqlSourceConfig(ConnectionConfig, ChangesConfig):
    of_changes: ClassVar[tuple[str, ...]] = ("server_id",)

    server_id: int | None = Field(default=None, ge=1, le=2**32 - 1)
    """The ID as a replica of the server, with `changes`. By default a number that depends on the
    pipeline, the source and the state directory. No other replica may have it."""


class MysqlSinkConfig(ConnectionConfig, DatabaseSinkConfig):
    pass
