"""The source of JDBC."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from penstock.connectors.jdbc.config import JdbcSourceConfig
from penstock.connectors.jdbc.connection import JdbcConnection
from penstock.connectors.jdbc.ranges import Range, ranges_of
from penstock.connectors.jdbc.reading import to_rows
from penstock.core.errors import OptionError
from penstock.core.text import did_you_mean
from penstock.sdk import Capability, Read
from penstock.sdk.columns.names import find_name
from penstock.sdk.database import Connection, TableSource
from penstock.sdk.database.cursor import Values
from penstock.sdk.database.row_conversion import RowConversion
from penstock.sdk.source import Offset

Part = tuple[Values | None, Values, Range | None]


class JdbcSource(TableSource[JdbcSourceConfig]):
    """Reads a table or a query of any database with a JDBC driver.

    The driver is the file in `jars` or the Maven package in `packages`, and runs in Java within the
    tasks. Rows are read in the order of `cursor_columns`, by default of a primary key. With
    `partition_column` several tasks read ranges of this column. With `watch` the source also reads
    rows that come later in the order, and their updates if a cursor column has the time of the last
    change; deletions are not read.

    JDBC has no list of open transactions. With `watch` a row whose transaction commits
    after rows later in the order is missed, unless the first cursor column is the time of the
    change, in UTC, and `min_age` is longer than a transaction takes.

    The names of a table and its columns may differ from those of the database by their case.
    Decimals without a precision are DECIMAL(38, 18); decimals of more than 38 digits, TIME, UUID,
    intervals and types that only one system has are STRING. A value that does not fit its
    column, such as a time with nanoseconds or an infinite time, becomes a dead letter; declare the
    column as STRING in `schema` to read it.

    The files of an embedded database (H2, HSQLDB, Derby) are opened for a transaction and closed
    after it, since other processes cannot use them meanwhile.

    Tested with H2, HSQLDB, Derby and PostgreSQL. MySQL, Oracle and SQL Server have dialects of
    their own, and other systems are expected to know standard SQL.

    ```yaml
    type: jdbc
    url: jdbc:oracle:thin:@//127.0.0.1:1521/FREEPDB1
    packages: [com.oracle.database.jdbc:ojdbc11:23.9.0.25.07]
    auth: {username: penstock, password: "${SHOP_PASSWORD}"}
    table: SHOP.ORDERS
    partition_column: ID
    partitions: 8
    ```
    """

    extra = "jdbc"
    client_modules = ("jpype",)
    parallelism = "a range of partition_column, otherwise the table"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.config.partition_column is not None:
            self.capabilities = self.capabilities - {Capability.ORDERED}

    def validate(self) -> None:
        super().validate()
        self.config.check_jars()

    def check(self) -> None:
        super().check()
        with self._transaction():
            self._range_column()

    def connect(self) -> JdbcConnection:
        return JdbcConnection(self.config, read_only=True, fetch_size=self.config.fetch_size)

    def query_columns(self, connection: Connection, query: str) -> pa.Schema:
        assert isinstance(connection, JdbcConnection)
        return connection.query_columns(query)

    def min_age_condition(self, column: str, seconds: float) -> str:
        age = f"{{fn TIMESTAMPADD(SQL_TSI_SECOND, -{math.ceil(seconds)}, CURRENT_TIMESTAMP)}}"
        return f"{column} <= {age}"

    def select_item(self, field: pa.Field) -> str:
        names = self._names()
        index = find_name(field.name, names)
        return self._connection.dialect.quote(field.name if index < 0 else names[index])

    def key_item(self, field: pa.Field) -> str:
        return self.select_item(field)

    def partitions(self, start: Offset, end: Offset) -> Sequence[Part]:  # type: ignore[override]
        parts = super().partitions(start, end)
        if self.config.partition_column is None:
            return [(*part, None) for part in parts]
        return [(*part, each) for part in parts for each in self._ranges(*part)]

    def read(self, partition: Part, read: Read) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        start, end, range_ = partition
        assert self.columns is not None
        cursor = self._cursor
        relation, name = cursor.relation, self._name
        bounds: Values = ()
        if range_ is not None:
            condition, bounds = range_.condition(self._connection.dialect)
            inner = f"SELECT * FROM {relation} WHERE {condition}"
            relation = self._connection.dialect.from_query(inner, "penstock_range")
            name = f"{name}, range {range_.number}"
        items = ", ".join(map(self.select_item, self.columns))
        query, parameters = f"SELECT {items} FROM {relation}", bounds
        if cursor.columns:
            query, window = replace(cursor, relation=relation).rows(items, start, end)
            parameters += window
        yield from self.read_query(query, parameters, RowConversion(name, self.columns, read))
        self._connection.rollback()

    def read_query(
        self, query: str, parameters: Sequence[Any], conversion: RowConversion
    ) -> Iterator[pa.RecordBatch]:
        connection = self._connection
        assert isinstance(connection, JdbcConnection)
        yield from conversion.batches(connection.batches(query, parameters), to_rows)

    def _ranges(self, start: Values | None, end: Values) -> Sequence[Range]:
        field, cursor = self._range_column(), self._cursor
        bounds = (self.config.lower_bound, self.config.upper_bound)
        found: Sequence[Any] = (None, None)
        if None in bounds:
            query = cursor.extent(field.name, start, end if cursor.columns else None)
            ((*found,),) = self._connection.query(*query)
            self._connection.rollback()
        return ranges_of(field, self.config.partitions, bounds, found)

    def _range_column(self) -> Any:
        """Returns the partition column as the database spells it. Raises OptionError."""
        column = self.config.partition_column
        if column is None:
            return None
        columns = self._target_columns()
        index = find_name(column, columns.names)
        if index < 0:
            raise OptionError.of(
                "partition_column", message=f'{self._name} has no column "{column}"',
                code="unknown-column", hint=did_you_mean(column, columns.names),
            )  # fmt: skip
        ranges_of(
            columns.field(index), 1, (self.config.lower_bound, self.config.upper_bound), (0, 0)
        )
        return columns.field(index)

    def _names(self) -> Sequence[str]:
        if self._spelled is None:
            self._spelled = self._target_columns().names
        return self._spelled

    _spelled: Sequence[str] | None = None
