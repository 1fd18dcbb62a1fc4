"""Connections of JDBC drivers."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa

from penstock.connectors.jdbc.config import ConnectionConfig
from penstock.connectors.jdbc.dialects import JdbcDialect, dialect_of
from penstock.connectors.jdbc.driver import Driver, drops_fractions
from penstock.connectors.jdbc.errors import translate_error
from penstock.connectors.jdbc.metadata import Metadata
from penstock.connectors.jdbc.parameters import RowSetter, set_values
from penstock.connectors.jdbc.reading import ResultReader, columns_of, to_rows
from penstock.connectors.jdbc.types import JdbcColumn
from penstock.core.errors import PenstockError, Permanent, Transient
from penstock.sdk.database import DbapiConnection, TableName
from penstock.sdk.database.connection import FETCHED

_BATCH = 1000
"""The number of rows that a statement writes at once."""
_ATTEMPT_SECONDS = 0.1
_NO_ROWS = " WHERE 1 = 0"


class JdbcConnection(DbapiConnection):
    """A connection, in UTC.

    The files of an embedded database are open in one process at a time. So the first statement of a
    transaction opens them, and its end closes them.
    """

    def __init__(
        self, config: ConnectionConfig, *, read_only: bool = False, fetch_size: int = 1000
    ) -> None:
        super().__init__(None)
        self.config, self._read_only, self._fetch_size = config, read_only, fetch_size
        self._driver: Driver = self._call(Driver, config)
        self._savepoint: Any = None
        self._found: Metadata | None = None
        self._targets: dict[TableName, list[JdbcColumn]] = {}
        self.dialect: JdbcDialect = self._dialect()

    def translate_error(self, error: Exception) -> PenstockError | None:
        return translate_error(error, self.config.address)

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        return int(self._call(self._execute, statement, parameters))

    def fetch(self, query: str, parameters: Sequence[Any] = ()) -> Iterator[list[tuple[Any, ...]]]:
        for columns, batch in self._results(query, parameters, FETCHED):
            # Computed columns may have the same name.
            fields = [column.field.with_name(str(index)) for index, column in enumerate(columns)]
            schema = pa.schema(fields)
            try:
                rows = to_rows(batch.rename_columns(schema.names), schema)
                values = [column.to_pylist() for column in rows.columns]
            except (pa.ArrowException, ValueError, OverflowError) as error:
                raise Permanent(
                    f"cannot read in the order of {', '.join(each.name for each in columns)}: "
                    f"{error}",
                    code="cursor-type",
                    hint="Set cursor_columns to columns of a query without nanoseconds and "
                    "infinite times.",
                ) from error
            yield [*zip(*values, strict=True)]

    def batches(self, query: str, parameters: Sequence[Any]) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a query as the driver returns them (see `reading`)."""
        for _, batch in self._results(query, parameters, self._fetch_size):
            yield batch

    def execute_many(self, statement: str, rows: pa.RecordBatch) -> None:
        for row in self.parameters(rows):
            self.execute(statement, row)

    def insert(self, table: TableName, rows: pa.RecordBatch) -> None:
        self._write(self.dialect.insert(table, rows.schema.names), rows, self._target(table, rows))

    def upsert(self, table: TableName, rows: pa.RecordBatch, key: Sequence[str]) -> None:
        if self.dialect.upserts == "statement":
            statement = self.dialect.upsert(table, rows.schema.names, key)
            self._write(statement, rows, self._target(table, rows))
            return
        new = pa.array(self._missing(table, rows, key), pa.int64())
        if len(new):
            self.insert(table, rows.take(new))

    def _missing(self, table: TableName, rows: pa.RecordBatch, key: Sequence[str]) -> list[int]:
        """Replaces the rows with the keys of rows. Returns the indexes of rows whose key is new."""
        others = [name for name in rows.schema.names if name not in key] or [*key]
        statement = self.dialect.update(table, others, key)
        names = [*others, *key]
        # A name may occur twice, which Arrow's selection by names does not accept.
        changed = rows.select([rows.schema.names.index(name) for name in names])
        counts = self._write(statement, changed, self._target(table, changed))
        if any(count < 0 for count in counts):
            # The driver has no numbers for the rows of a batch.
            parts = [changed.slice(index, 1) for index in range(changed.num_rows)]
            counts = [self._write_one(statement, table, part) for part in parts]
        return [index for index, count in enumerate(counts) if not count]

    def _write_one(self, text: str, table: TableName, row: pa.RecordBatch) -> int:
        """Executes a statement for one row. Returns the number of rows that it has changed."""
        setter = RowSetter(self._target(table, row), self.dialect, self._opened())
        with self._closing(self._prepared, text) as statement:
            columns = setter.values(row)
            self._call(_set_row, statement, columns, [values[0] for _, values in columns])
            return int(self._call(statement.executeUpdate))

    def delete(self, table: TableName, keys: pa.RecordBatch) -> None:
        self._write(self.dialect.delete(table, keys.schema.names), keys, self._target(table, keys))

    def columns(self, table: TableName) -> pa.Schema | None:
        known = self._call(self._known_columns, table)
        return None if known is None else pa.schema([column.field for column in known])

    def query_columns(self, query: str) -> pa.Schema:
        """Returns the columns of a query."""
        select = f"SELECT * FROM {self.dialect.from_query(query, 'penstock_query')}{_NO_ROWS}"
        with self._closing(self._opened().createStatement) as statement:
            result = self._call(statement.executeQuery, select)
            return pa.schema([each.field for each in columns_of(result.getMetaData())])

    def primary_key(self, table: TableName) -> tuple[str, ...]:
        return tuple(self._call(lambda: self._metadata().primary_key(table)))

    def unordered_columns(self, table: TableName) -> set[str]:
        """Returns the columns of a table by which rows are not sorted as values are compared."""
        unordered = self.dialect.unordered
        if not unordered:
            return set()
        types = self._call(lambda: self._metadata().type_names(table))
        return {name for name, type_ in types.items() if type_ in unordered}

    def unique_keys(self, table: TableName) -> list[tuple[str, ...]]:
        return list(self._call(lambda: self._metadata().unique_keys(table)))

    def tables(self) -> list[TableName]:
        return list(self._call(lambda: self._metadata().tables()))

    def savepoint(self) -> None:
        self._savepoint = self._call(self._opened().setSavepoint)

    def release(self) -> None:
        with suppress(Exception):  # Oracle and SQL Server release savepoints by themselves.
            self.client.releaseSavepoint(self._savepoint)

    def restore(self) -> None:
        self._call(self.client.rollback, self._savepoint)

    def commit(self) -> None:
        if self.client is not None:
            self._call(self.client.commit)
        self._end()

    def rollback(self) -> None:
        if self.client is not None:
            self._call(self.client.rollback)
        self._end()

    def close(self) -> None:
        client, self.client, self._found = self.client, None, None
        if client is not None:
            with suppress(Exception):
                client.rollback()
            with suppress(Exception):
                client.close()
            if self.config.is_embedded and self.dialect.shutdown:
                self._driver.shut_down(self.dialect.shutdown)

    def _end(self) -> None:
        self._targets.clear()
        if self.config.is_embedded:
            self.close()

    def _opened(self) -> Any:
        if self.client is None:
            self.client = self._connected()
            if self._call(drops_fractions, self.client):
                self.dialect = replace(self.dialect, sends_times_as_texts=True)
            if self._read_only:
                with suppress(Exception):  # The drivers of some databases do not support it.
                    self.client.setReadOnly(True)
        return self.client

    def _connected(self) -> Any:
        """Connects. Waits while another process has the files of the database open."""
        deadline = time.monotonic() + self.config.timeout
        while True:
            try:
                return self._call(self._driver.connect, self.dialect)
            except Transient as error:
                is_file_in_use = error.code == "busy" and self.config.is_embedded
                if not is_file_in_use or time.monotonic() > deadline:
                    raise
            time.sleep(_ATTEMPT_SECONDS)

    def _dialect(self) -> JdbcDialect:
        dialect = dialect_of(self.config.system)
        return replace(dialect, spelling=self._spelled)

    def _spelled(self, table: TableName) -> TableName:
        return self._call(lambda: self._metadata().spelled(table))  # type: ignore[no-any-return]

    def _metadata(self) -> Metadata:
        client = self._opened()
        if self._found is None:
            self._found = Metadata(client)
        return self._found

    def _known_columns(self, table: TableName) -> list[JdbcColumn] | None:
        if table not in self._targets:
            if not self._metadata().exists(table):
                return None
            select = f"SELECT * FROM {self.dialect.table(table)}{_NO_ROWS}"
            self._targets[table] = self._metadata().columns(table, select)
        return self._targets[table]

    def _target(self, table: TableName, rows: pa.RecordBatch) -> list[JdbcColumn]:
        known = {column.name: column for column in self._call(self._known_columns, table) or ()}
        missing = next((name for name in rows.schema.names if name not in known), None)
        if missing is not None:
            raise Permanent(
                f'the table "{table}" has no column "{missing}" any more', code="unknown-column",
                hint="Start the run again.",
            )  # fmt: skip
        return [known[name] for name in rows.schema.names]

    def _execute(self, text: str, parameters: Sequence[Any]) -> int:
        with closing(self._prepared(text)) as statement:
            set_values(statement, parameters, self.dialect)
            return 0 if statement.execute() else int(statement.getUpdateCount())

    @contextmanager
    def _closing(self, function: Any, *arguments: Any) -> Iterator[Any]:
        """Calls a function, and closes its result, also after the connection has ended."""
        result = self._call(function, *arguments)
        try:
            yield result
        finally:
            with suppress(Exception):
                result.close()

    def _prepared(self, text: str) -> Any:
        statement = self._opened().prepareStatement(text)
        with suppress(Exception):  # Not all drivers have this timeout.
            statement.setQueryTimeout(math.ceil(self.config.timeout))
        return statement

    def _results(
        self, query: str, parameters: Sequence[Any], fetch_size: int
    ) -> Iterator[tuple[list[JdbcColumn], pa.RecordBatch]]:
        """Yields the rows of a query in parts, with its columns."""
        with self._closing(self._prepared, query) as statement:
            self._call(statement.setFetchSize, fetch_size)
            as_texts = self.dialect.times_as_texts
            self._call(set_values, statement, parameters, self.dialect)
            with self._closing(statement.executeQuery) as result:
                columns = self._call(lambda: columns_of(result.getMetaData()))
                reader = ResultReader(result, columns, fetch_size, times_as_texts=as_texts)
                batches = reader.batches()
                while (batch := self._call(next, batches, None)) is not None:
                    yield columns, batch

    def _write(self, text: str, rows: pa.RecordBatch, targets: Sequence[JdbcColumn]) -> list[int]:
        """Executes a statement for each row. Returns the numbers of rows that it has changed."""
        client = self._opened()
        setter = RowSetter(targets, self.dialect, client)
        counts: list[int] = []
        with self._closing(self._prepared, text) as statement:
            for start in range(0, rows.num_rows, _BATCH):
                columns = setter.values(rows.slice(start, _BATCH))
                counts += self._call(_execute_batch, statement, columns)
        return counts


def _execute_batch(statement: Any, columns: Sequence[tuple[Any, Sequence[Any]]]) -> list[int]:
    for row in zip(*(values for _, values in columns), strict=True):
        _set_row(statement, columns, row)
        statement.addBatch()
    return [int(count) for count in statement.executeBatch()]


def _set_row(
    statement: Any, columns: Sequence[tuple[Any, Sequence[Any]]], row: Sequence[Any]
) -> None:
    for index, ((setter, _), value) in enumerate(zip(columns, row, strict=True), 1):
        setter(statement, index, value)
