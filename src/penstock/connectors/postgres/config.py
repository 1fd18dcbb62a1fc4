"""Options of the PostgreSQL source and sink."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from penstock.sdk.database import DatabaseSinkConfig
from penstock.sdk.database.changes import ChangesConfig
from penstock.sdk.database.config import ServerConfig


class ConnectionConfig(ServerConfig):
    schemes: ClassVar[tuple[str, ...]] = ("postgresql", "postgres")
    default_port: ClassVar[int] = 5432

    url: str
    """The database, as `postgresql://HOST:PORT/DATABASE`."""


class PostgresSourceConfig(ConnectionConfig, ChangesConfig):
    of_changes: ClassVar[tuple[str, ...]] = ("slot", "publication", *ChangesConfig.of_changes)

    slot: str | None = Field(default=None, pattern=r"^[a-z0-9_]{1,63}$")
    """The replication slot, which is created if it is missing. `penstock_PIPELINE_NODE` by
    default. Sources of a pipeline with one slot share its stream."""
    publication: str | None = Field(default=None, min_length=1)
    """The publication of the table, which is created if it is missing. Named as the slot by
    default."""

    def shared_options(self, pipeline: str) -> Mapping[str, Any]:
        return {"slot": self.slot or f"penstock_{pipeline}"}


class PostgresSinkConfig(ConnectionConfig, DatabaseSinkConfig):
    create_schema: bool = False
    """Creates the schema of the table if it is missing."""
    on_conflict: Literal["update", "nothing"] = "update"
    """The action for a row whose key the table has, with `mode: upsert`: `update` the row of the
    table, or do `nothing`."""
    update_where: dict[str, Literal["=", ">", ">=", "<", "<=", "!=", "<>"]] = {}
    """Columns with operators, with `mode: upsert`. A row of the table is updated only if each of
    these columns of the new row compares so with that of the table: `{version: ">"}`."""
