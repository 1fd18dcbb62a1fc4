"""Options of the PostgreSQL source and sink."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field, field_validator

from penstock.sdk.database.changes import ChangesConfig
from penstock.sdk.database.config import ServerConfig, UpdateWhereConfig
from penstock.sdk.network.identity import IdentityAuth

_MAX_NAME = 63


class ConnectionConfig(ServerConfig):
    schemes: ClassVar[tuple[str, ...]] = ("postgresql", "postgres")
    default_port: ClassVar[int] = 5432

    url: str
    """The database, as `postgresql://HOST:PORT/DATABASE`."""
    auth: IdentityAuth | None = None
    """The credentials. Without them the server must accept the user that runs Penstock."""


class PostgresSourceConfig(ConnectionConfig, ChangesConfig):
    of_changes: ClassVar[tuple[str, ...]] = (
        "slot", "publication", "before_updates", *ChangesConfig.of_changes
    )  # fmt: skip

    slot: str | None = Field(default=None, pattern=r"^[a-z0-9_]{1,63}$")
    """The replication slot, which is created if it is missing. `penstock_PIPELINE_NODE` by
    default. Sources of a pipeline with one slot share its stream."""
    publication: str | None = None
    """The publication of the table, which is created if it is missing. Named as the slot by
    default."""
    before_updates: bool = False
    """Reads the row before each update, too, as the change `ub`, without generated columns. The
    table needs REPLICA IDENTITY FULL."""

    @field_validator("publication")
    @classmethod
    def _check_publication(cls, name: str | None) -> str | None:
        if name is not None and (not name or "\0" in name or len(name.encode()) > _MAX_NAME):
            raise ValueError(f"expected a name of 1 to {_MAX_NAME} bytes without NUL")
        return name

    def shared_options(self, pipeline: str) -> Mapping[str, Any]:
        return {"slot": self.slot or f"penstock_{pipeline}"}


class PostgresSinkConfig(ConnectionConfig, UpdateWhereConfig):
    create_schema: bool = False
    """Creates the schema of the table if it is missing."""
