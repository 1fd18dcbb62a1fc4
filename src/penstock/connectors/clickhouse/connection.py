"""Connections to ClickHouse over HTTP."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from typing import Any

import pyarrow as pa

from penstock.connectors.clickhouse.config import ConnectionConfig
from penstock.connectors.clickhouse.errors import translate_error
from penstock.connectors.clickhouse.literals import statement
from penstock.connectors.clickhouse.tables import Engine
from penstock.connectors.clickhouse.types import DIALECT, ClickhouseDialect, field_of
from penstock.core.errors import Permanent, Rejected, Transient
from penstock.core.secret import revealed
from penstock.sdk.database import Connection, TableName
from penstock.sdk.database.connection import FETCHED
from penstock.sdk.network.cut_responses import check_whole

_READING = {
    "output_format_arrow_string_as_string": 0,
    "output_format_arrow_fixed_string_as_fixed_byte_array": 0,
    "output_format_arrow_low_cardinality_as_dictionary": 0,
}
"""Strings as bytes, since a String may have text that is not UTF-8."""
_COLUMNS = """
SELECT name, type, default_kind FROM system.columns
WHERE database = coalesce(\0, currentDatabase()) AND table = \0
AND default_kind NOT IN ('MATERIALIZED', 'ALIAS') ORDER BY position
"""
_TABLES = """
SELECT nullIf(database, currentDatabase()), name FROM system.tables
WHERE database NOT IN ('system', 'INFORMATION_SCHEMA', 'information_schema') AND NOT is_temporary
ORDER BY database = currentDatabase() DESC, 1, 2
"""
_ENGINE = """
SELECT engine, engine_full, sorting_key FROM system.tables
WHERE database = coalesce(\0, currentDatabase()) AND name = \0
"""


class ClickhouseConnection(Connection):
    """A connection. ClickHouse has no transactions: each statement is effective at once."""

    dialect: ClickhouseDialect = DIALECT

    def __init__(
        self, config: ConnectionConfig, dialect: ClickhouseDialect = DIALECT, *,
        read_only: bool, final: bool = False,
    ) -> None:  # fmt: skip
        self.config, self.read_only = config, read_only
        self.dialect = dialect
        self._pool, self._reading = _pool(config), dict[str, Any](_READING)
        if final:
            self._reading["final"] = 1
        if config.compression != "lz4":
            codec = {"none": "none", "zstd": "zstd"}[config.compression]
            self._reading["output_format_arrow_compression_method"] = codec
        self._client = self.call(lambda: _connect(config, self._pool))

    def execute(self, statement_: str, parameters: Sequence[Any] = ()) -> int:
        text = statement(statement_, parameters)
        self.call(lambda: self._client.command(text))
        return 0

    def execute_many(self, statement: str, rows: pa.RecordBatch) -> None:
        for values in self.parameters(rows):
            self.execute(statement, values)

    def query(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return [row for part in self.fetch(query, parameters) for row in part]

    def fetch(self, query: str, parameters: Sequence[Any] = ()) -> Iterator[list[tuple[Any, ...]]]:
        text = statement(query, parameters)
        blocks = self.call(
            lambda: self._client.query_row_block_stream(
                text,
                settings=self._final,
                query_tz="UTC",
                tz_mode="aware",
                query_formats={"String": "bytes"},
            )
        )
        _check_digits(blocks.source)
        are_strings = [type_.base_type == "String" for type_ in blocks.source.column_types]
        with blocks:
            rows = iter(blocks)
            while (block := self.call(lambda: next(rows, None))) is not None:
                yield [tuple(map(_value, row, are_strings)) for row in block]

    def batches(
        self, query: str, parameters: Sequence[Any]
    ) -> Generator[pa.RecordBatch, None, None]:
        """Yields the rows of a query as Arrow batches, with bounded memory."""
        text = statement(query, parameters)
        settings = {**self._reading, "max_block_size": FETCHED}
        stream = self.call(
            lambda: self._client.raw_stream(text, settings=settings, fmt="ArrowStream")
        )
        with closing(stream):
            try:
                with pa.ipc.open_stream(stream) as reader:
                    yield from reader
            except pa.ArrowException as error:
                raise Transient(
                    f"the response of the database {self.config.address} ended early: {error}",
                    code="unreachable",
                ) from error
            except Exception as error:
                raise self._translated(error) from error

    def columns(self, table: TableName) -> pa.Schema | None:
        rows = self.query(_COLUMNS, _qualified(table))
        if not rows:
            return None
        return pa.schema(
            [field_of(name, type_, has_default=bool(default)) for name, type_, default in rows]
        )

    def query_columns(self, query: str) -> pa.Schema:
        """Returns the columns of a query."""
        rows = self.query(f"DESCRIBE TABLE ({query})")
        return pa.schema([field_of(name, type_) for name, type_, *_ in rows])

    def engine(self, table: TableName) -> Engine | None:
        """Returns the engine of a table; None if it does not exist."""
        rows = self.query(_ENGINE, _qualified(table))
        return Engine(*rows[0]) if rows else None

    def primary_key(self, table: TableName) -> tuple[str, ...]:
        """Returns the sorting key of an engine that keeps one row of each key."""
        engine = self.engine(table)
        return engine.sorting_columns if engine is not None and engine.keeps_one_row else ()

    def sorting_key(self, table: TableName) -> tuple[str, ...]:
        """Returns the columns of ORDER BY. Several rows may have the same values."""
        engine = self.engine(table)
        return () if engine is None else engine.sorting_columns

    def unique_keys(self, table: TableName) -> list[tuple[str, ...]]:
        return [key] if (key := self.primary_key(table)) else []

    def tables(self) -> list[TableName]:
        return [TableName.of(*parts) for parts in self.query(_TABLES)]

    def commit(self) -> None:
        """Does nothing: rows are inserted at once."""

    def rollback(self) -> None:
        """Does nothing: rows stay inserted."""

    def savepoint(self) -> None:
        """Does nothing: an insert that fails leaves no rows."""

    def release(self) -> None:
        """Does nothing."""

    def restore(self) -> None:
        """Does nothing."""

    def close(self) -> None:
        with suppress(Exception):
            self._client.close()
        self._pool.clear()

    @property
    def _final(self) -> dict[str, Any]:
        return {name: value for name, value in self._reading.items() if name == "final"}

    def call(self, function: Callable[[], Any]) -> Any:
        """Calls the client, and translates its errors."""
        try:
            return function()
        except Exception as error:
            raise self._translated(error) from error

    def _translated(self, error: Exception) -> Exception:
        translated = translate_error(error, self.config)
        if isinstance(translated, Rejected) and self.read_only:
            return Permanent(f"the query failed: {translated.message}")
        return error if translated is None else translated


def _value(value: Any, is_string: bool) -> Any:
    """Returns a String as a text; as bytes if they are not UTF-8."""
    if not is_string or not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _check_digits(result: Any) -> None:
    """Raises Permanent for a column of nanoseconds, which values of Python do not have."""
    for name, type_ in zip(result.column_names, result.column_types, strict=True):
        if "DateTime64" in type_.name and getattr(type_, "scale", 0) > 6:
            raise Permanent(
                f"cannot read in the order of {name}, which has nanoseconds",
                code="cursor-type",
                hint="Set cursor_columns to a column of a query: "
                "SELECT *, toUnixTimestamp64Nano(at) AS at_ns.",
            )


def _qualified(table: TableName) -> tuple[str | None, str]:
    """Returns the database of a table, None for the current one, and its name."""
    return (table.parts[-2] if len(table.parts) > 1 else None), table.name


def _pool(config: ConnectionConfig) -> Any:
    import urllib3

    class Pool(urllib3.PoolManager):
        def urlopen(self, *parameters: Any, **options: Any) -> Any:
            response = super().urlopen(*parameters, **options)
            try:
                check_whole(response.headers)
            except OSError as error:
                raise urllib3.exceptions.ProtocolError(str(error)) from error
            return response

    tls = config.tls_settings
    options: dict[str, Any] = {} if tls is None else {"ssl_context": tls.context()}
    return Pool(maxsize=2, retries=False, **options)


def _connect(config: ConnectionConfig, pool: Any) -> Any:
    import clickhouse_connect

    logging.getLogger("clickhouse_connect").addHandler(logging.NullHandler())

    auth = config.auth
    return clickhouse_connect.get_client(
        interface="http" if config.tls_settings is None else "https",
        host=config.host,
        port=config.port,
        username=None if auth is None else auth.username,
        password="" if auth is None else revealed(auth.password) or "",
        database=config.database,
        settings={"max_execution_time": math.ceil(config.timeout), **config.settings},
        compress=False,
        query_limit=0,
        query_retries=0,
        connect_timeout=max(1, math.ceil(config.connect_seconds)),
        send_receive_timeout=math.ceil(config.silence),
        client_name="penstock",
        pool_mgr=pool,
        autogenerate_session_id=False,
        show_clickhouse_errors=True,
        form_encode_query_params=False,
    )
