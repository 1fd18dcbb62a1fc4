"""Options of the ClickHouse source and sink."""

from __future__ import annotations

from typing import ClassVar, Literal
from urllib.parse import urlsplit

from penstock.sdk.database import DatabaseSinkConfig, RangesConfig
from penstock.sdk.database.config import ServerConfig

_TLS_PORT = 8443
_MARGIN = 2.0


class ConnectionConfig(ServerConfig):
    schemes: ClassVar[tuple[str, ...]] = ("clickhouse",)
    default_port: ClassVar[int] = 8123

    url: str
    """The database and the port of the HTTP interface, as `clickhouse://HOST:PORT/DATABASE`. The
    default port is 8123, with `tls` 8443."""
    settings: dict[str, bool | int | float | str] = {}
    """Settings of the server for each statement, as `max_memory_usage`."""
    compression: Literal["none", "lz4", "zstd"] = "lz4"
    """The compression of rows on the connection."""

    @property
    def port(self) -> int:
        tls = _TLS_PORT if self.tls_settings is not None else self.default_port
        return urlsplit(self.url).port or tls

    @property
    def silence(self) -> float:
        """The seconds without a response after which the connection is closed."""
        return self.timeout + _MARGIN


class ClickhouseSourceConfig(ConnectionConfig, RangesConfig):
    final: bool = True
    """Reads tables of engines such as ReplacingMergeTree without rows that are replaced or deleted
    (FINAL). Other tables are read as they are."""


class ClickhouseSinkConfig(ConnectionConfig, DatabaseSinkConfig):
    engine: str | None = None
    """The engine of a new table with its parameters, in place of MergeTree or, with `mode: upsert`,
    ReplacingMergeTree with the version column and the deleted column."""
    order_columns: list[str] = []
    """The columns of ORDER BY of a new table. With `mode: upsert` it is the primary key."""
    column_types: dict[str, str] = {}
    """Types of columns of a new table, as `{status: LowCardinality(String)}`. A column that is not
    Nullable accepts no null."""
    version_column: str = "penstock_version"
    """The column of a new table, with `mode: upsert`, for the version of a row."""
    deleted_column: str = "penstock_deleted"
    """The column of a new table, with `mode: upsert`, that marks deleted rows with 1."""
    deletes: Literal["mark", "remove"] = "mark"
    """With `mode: upsert`, write 1 to the deleted column of a deleted row, or remove its rows by
    ALTER TABLE ... DELETE. With `remove` the sink writes neither the version column nor the deleted
    column."""
