"""Options of sources and sinks of tables."""

from __future__ import annotations

from typing import ClassVar, Literal, Self
from urllib.parse import unquote, urlsplit

from pydantic import Field, field_validator, model_validator

from penstock.core.units import Duration, PositiveDuration
from penstock.sdk.config import Config
from penstock.sdk.database.names import TableName
from penstock.sdk.network.address import url_validator
from penstock.sdk.network.auth import PasswordAuth
from penstock.sdk.network.tls import Tls, TlsOption, resolve_tls

CONNECT_SECONDS = 10.0


class ServerConfig(Config):
    """Options of a connection to the server of a database."""

    schemes: ClassVar[tuple[str, ...]]
    """The schemes of `url`, the usual one first."""
    default_port: ClassVar[int]
    """The port without one in `url`."""

    url: str
    """The database."""
    auth: PasswordAuth | None = None
    """The credentials. Without them the server must accept the user that runs Penstock."""
    tls: TlsOption = None
    """TLS: `true`, or certificates and verification. Without TLS by default."""
    timeout: PositiveDuration = 300.0
    """The time after which a statement is canceled, and the time without a response after which the
    connection is closed."""

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str) -> str:
        url_validator(*cls.schemes, user="auth.username and auth.password")(url)
        parts = urlsplit(url)
        if parts.query or parts.fragment:
            raise ValueError("expected options of Penstock, such as tls, in place of parameters")
        if not parts.path.strip("/"):
            raise ValueError(f"expected a database: {cls.schemes[0]}://HOST/DATABASE")
        return url

    @model_validator(mode="after")
    def _check_tls(self) -> Self:
        self.tls_settings  # noqa: B018
        return self

    @property
    def host(self) -> str:
        """The host."""
        return str(urlsplit(self.url).hostname)

    @property
    def port(self) -> int:
        """The port."""
        return urlsplit(self.url).port or self.default_port

    @property
    def database(self) -> str:
        """The name of the database."""
        return unquote(urlsplit(self.url).path.strip("/"))

    @property
    def address(self) -> str:
        """The database for messages."""
        return f"{self.host}:{self.port}/{self.database}"

    @property
    def connect_seconds(self) -> float:
        """The timeout of a connection attempt."""
        return min(self.timeout, CONNECT_SECONDS)

    @property
    def tls_settings(self) -> Tls | None:
        """The TLS settings; None without TLS."""
        return resolve_tls(self.tls)


class CursorConfig(Config):
    """Options of reading in the order of cursor columns."""

    cursor_columns: list[str] = []
    """The columns in whose order rows are read: an ID that grows, or the time of the last change.
    The primary key is appended, since several rows may have the same time.

    By default the primary key; with `watch` only if it is one integer. Without cursor columns and
    primary key all rows are one batch.
    """
    watch: bool = False
    """Also reads rows whose cursor columns grow beyond those that were read; the run does not
    end."""
    interval: PositiveDuration = 1.0
    """The time between two queries for new rows, with `watch`."""
    min_age: Duration | None = None
    """The age of a time in the first cursor column at which its rows are read. Rows that are
    committed later than this after their time, or with an earlier time, may be missed. By default
    2 seconds if the column holds times."""
    max_records: int | None = Field(default=None, ge=1)
    """The maximum number of rows of a batch."""


class TableSourceConfig(CursorConfig):
    table: str | None = None
    """The table, as `orders` or `public.orders`."""
    query: str | None = None
    """A SELECT statement in the SQL of the system, in place of a table."""

    @field_validator("table")
    @classmethod
    def _check_table(cls, value: str | None) -> str | None:
        if value is not None:
            TableName.parse(value)
        return value

    @field_validator("query")
    @classmethod
    def _check_query(cls, value: str | None) -> str | None:
        if value is not None and "\0" in value:
            raise ValueError("expected a query without NUL")
        return value

    @model_validator(mode="after")
    def _check_one_option(self) -> TableSourceConfig:
        if (self.table is None) == (self.query is None):
            raise ValueError("expected either table or query")
        return self


class RangesConfig(TableSourceConfig):
    """Options of reading in parallel ranges."""

    partition_column: str | None = None
    """A column of numbers, dates or times, by whose ranges several tasks read. Without it one task
    reads the rows in order. A row whose value changes while the ranges are read may be read twice
    or not at all."""
    partitions: int = Field(default=4, ge=1, le=10_000)
    """The number of ranges of `partition_column`. Each has a connection."""
    lower_bound: int | float | str | None = None
    """The start of the second range is `lower_bound` and a step. Rows below are in the first range,
    so no row is left out. By default the least value of the rows."""
    upper_bound: int | float | str | None = None
    """The bound of the last range. Rows above are in it. By default the greatest value of the
    rows."""

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        if self.partition_column is None:
            given = self.model_fields_set & {"partitions", "lower_bound", "upper_bound"}
            if given:
                raise ValueError(f"{min(given)} requires partition_column")
        return self


class TargetConfig(Config):
    """Options of the table of a sink."""

    create: bool = True
    """Creates a missing table, with the primary key of the sink."""
    schema_changes: Literal["fail", "apply"] = "fail"
    """The action for columns that the table does not have: an error before the first row, or
    `ALTER TABLE`."""


class TableConfig(Config):
    """The table of a sink."""

    table: str
    """The table, as `orders` or `public.orders`."""

    @field_validator("table")
    @classmethod
    def _check_table(cls, value: str) -> str:
        TableName.parse(value)
        return value


class DatabaseSinkConfig(TargetConfig, TableConfig):
    pass


class ConflictConfig(DatabaseSinkConfig):
    on_conflict: Literal["update", "nothing"] = "update"
    """The action for a row whose key the table has, with `mode: upsert`: `update` the row of the
    table, or do `nothing`. Rows of a key are written one after another, in source order."""


class UpdateWhereConfig(ConflictConfig):
    update_where: dict[str, Literal["=", ">", ">=", "<", "<=", "!=", "<>"]] = {}
    """Columns with operators, with `mode: upsert`. A row of the table is updated only if each of
    these columns of the new row compares so with that of the table: `{version: ">"}`. Rows of a key
    are written one after another, in source order."""
