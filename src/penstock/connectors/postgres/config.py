"""Options of the PostgreSQL source and sink."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from penstock.sdk import ReceivingConfig
from penstock.sdk.database import DatabaseSinkConfig, TableSourceConfig
from penstock.sdk.database.config import ServerConfig


class ConnectionConfig(ServerConfig):
    schemes: ClassVar[tuple[str, ...]] = ("postgresql", "postgres")
    default_port: ClassVar[int] = 5432

    url: str
    """The database, as `postgresql://HOST:PORT/DATABASE`."""


_OF_CHANGES = ("slot", "publication", "on_truncate", "journal", "max_message_size")
_OF_ROWS = ("query", "cursor_columns", "watch", "interval", "min_age")


class PostgresSourceConfig(ConnectionConfig, TableSourceConfig, ReceivingConfig):
    changes: bool = False
    """Reads the rows of the table, then their inserts, updates and deletes by logical replication.
    The run does not end."""
    slot: str | None = Field(default=None, pattern=r"^[a-z0-9_]{1,63}$")
    """The replication slot, which is created if it is missing. `penstock_PIPELINE_NODE` by
    default."""
    publication: str | None = Field(default=None, min_length=1)
    """The publication of the table, which is created if it is missing. Named as the slot by
    default."""
    on_truncate: Literal["fail", "ignore"] = "fail"
    """The action when the table is truncated. `ignore` keeps the rows in the targets."""

    @model_validator(mode="after")
    def _check_mode(self) -> Self:
        for option in _OF_ROWS if self.changes else _OF_CHANGES:
            if option in self.model_fields_set:
                raise ValueError(
                    f"changes excludes {option}" if self.changes else f"{option} requires changes"
                )
        return self


class PostgresSinkConfig(ConnectionConfig, DatabaseSinkConfig):
    pass
