"""The source of PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from penstock.connectors.postgres.config import PostgresSourceConfig
from penstock.connectors.postgres.connection import PostgresConnection
from penstock.connectors.postgres.texts import is_read_as_json, to_rows
from penstock.sdk import Read
from penstock.sdk.database import Connection, TableSource
from penstock.sdk.database.types import without_declared


class PostgresSource(TableSource[PostgresSourceConfig]):
    """Reads a table or a query of a PostgreSQL database.

    Rows are read in the order of `cursor_columns`, by default of a primary key of one integer. With
    `watch` the source also reads rows that come later in this order. Updates are read if a cursor
    column has the time of the last change; deletions are not read.

    A row whose transaction commits after rows later in the order is read: with `watch` the source
    reads rows up to a position when all transactions that might write rows before it have ended.
    For a cursor column of times these are the transactions of the database, otherwise those that
    write to the table. So a transaction that stays open delays new rows. Values that are assigned
    before the transaction begins, such as IDs that an application reserves, are not covered.

    The columns are those of the table. `numeric` without a precision is DECIMAL(38, 18); declare
    the column as STRING in `schema` for other numbers. Types without a counterpart, such as enums,
    ranges and intervals, are STRING. A value that does not fit its column, such as an infinite
    date, becomes a dead letter.

    ```yaml
    type: postgres
    url: postgresql://127.0.0.1:5432/shop
    auth: {username: penstock, password: "${SHOP_PASSWORD}"}
    table: public.orders
    watch: true
    ```
    """

    extra = "postgres"
    client_modules = ("psycopg",)

    def connect(self) -> PostgresConnection:
        connection = PostgresConnection(self.config)
        connection.client.read_only = True
        return connection

    def query_columns(self, connection: Connection, query: str) -> pa.Schema:
        assert isinstance(connection, PostgresConnection)
        return connection.query_columns(query)

    def infer_schema(self) -> pa.Schema | None:
        return without_declared(self._target_columns())

    def min_age_condition(self, column: str, seconds: float) -> str:
        return f"{column} <= now() - make_interval(secs => {seconds!r})"

    def open_transactions(self, connection: Connection, *, by_time: bool) -> frozenset[Any]:
        assert isinstance(connection, PostgresConnection)
        table = None if self._table is None else connection.dialect.table(self._table)
        return connection.open_transactions(None if by_time else table)

    def select_item(self, field: pa.Field) -> str:
        name = self._connection.dialect.quote(field.name)
        return f"to_jsonb({name}) AS {name}" if is_read_as_json(field) else name

    def read_query(
        self, query: str, parameters: Sequence[Any], read: Read
    ) -> Iterator[pa.RecordBatch]:
        connection, schema = self._connection, self.columns
        assert isinstance(connection, PostgresConnection) and schema is not None
        number = 0
        for texts in connection.copy_rows(query, parameters, schema.names):
            convert, row = partial(_convert, texts, schema), partial(_row, texts)
            yield from self.convert(texts.num_rows, number, read, convert, row)
            number += texts.num_rows


def _convert(texts: pa.RecordBatch, schema: pa.Schema, start: int, stop: int) -> pa.RecordBatch:
    return to_rows(texts.slice(start, stop - start), schema)


def _row(texts: pa.RecordBatch, index: int) -> Mapping[str, Any]:
    row: Mapping[str, Any] = texts.slice(index, 1).to_pylist()[0]
    return row
