"""Options of the MySQL source and sink."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from penstock.sdk import PositiveDuration
from penstock.sdk.database import ConflictConfig
from penstock.sdk.database.changes import ChangesConfig
from penstock.sdk.database.config import ServerConfig
from penstock.sdk.network.identity import IdentityAuth

_FIRST_ID, _IDS = 1 << 30, 3 << 30
"""Server IDs that people seldom give."""


def replica_id(name: str) -> int:
    """Returns a server ID that depends on a name."""
    return _FIRST_ID + zlib.crc32(name.encode()) % _IDS


class ConnectionConfig(ServerConfig):
    schemes: ClassVar[tuple[str, ...]] = ("mysql", "mariadb")
    default_port: ClassVar[int] = 3306

    url: str
    """The database, as `mysql://HOST:PORT/DATABASE`."""
    auth: IdentityAuth | None = None
    """The credentials. Without them the server must accept the user that runs Penstock."""
    timeout: PositiveDuration = 300.0
    """The time for which a statement waits for locks. The connection is closed 10 seconds after
    this time without a response."""


class MysqlSourceConfig(ConnectionConfig, ChangesConfig):
    of_changes: ClassVar[tuple[str, ...]] = ("server_id", *ChangesConfig.of_changes)

    server_id: int | None = Field(default=None, ge=1, le=2**32 - 1)
    """The ID as a replica of the server, with `changes`. By default a number that depends on the
    pipeline, the source and the state directory. No other replica may have it. Sources of a
    pipeline with one ID share a connection to the log."""

    def shared_options(self, pipeline: str) -> Mapping[str, Any]:
        return {"server_id": self.server_id or replica_id(f"{pipeline}/{self.address}")}


class MysqlSinkConfig(ConnectionConfig, ConflictConfig):
    pass
