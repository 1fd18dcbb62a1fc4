"""The source of JDBC."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa

from penstock.connectors.jdbc.config import JdbcSourceConfig
from penstock.connectors.jdbc.connection import JdbcConnection
from penstock.connectors.jdbc.reading import to_rows
from penstock.sdk.columns.names import find_name
from penstock.sdk.database import Connection, RangedSource
from penstock.sdk.database.row_conversion import RowConversion


class JdbcSource(RangedSource[JdbcSourceConfig]):
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

    def validate(self) -> None:
        super().validate()
        self.config.check_jars()

    def connect(self) -> JdbcConnection:
        return JdbcConnection(self.config, read_only=True, fetch_size=self.config.fetch_size)

    def query_columns(self, connection: Connection, query: str) -> pa.Schema:
        assert isinstance(connection, JdbcConnection)
        return connection.query_columns(query)

    def unordered_columns(self) -> Collection[str]:
        connection = self._connection
        assert isinstance(connection, JdbcConnection)
        return () if self._table is None else connection.unordered_columns(self._table)

    def min_age_condition(self, column: str, seconds: float) -> str:
        age = f"{{fn TIMESTAMPADD(SQL_TSI_SECOND, -{math.ceil(seconds)}, CURRENT_TIMESTAMP)}}"
        return f"{column} <= {age}"

    def select_item(self, field: pa.Field) -> str:
        names = self._names()
        index = find_name(field.name, names)
        return self._connection.dialect.quote(field.name if index < 0 else names[index])

    def key_item(self, field: pa.Field) -> str:
        return self.select_item(field)

    def read_query(
        self, query: str, parameters: Sequence[Any], conversion: RowConversion
    ) -> Iterator[pa.RecordBatch]:
        connection = self._connection
        assert isinstance(connection, JdbcConnection)
        yield from conversion.batches(connection.batches(query, parameters), to_rows)

    def _names(self) -> Sequence[str]:
        if self._spelled is None:
            self._spelled = self._target_columns().names
        return self._spelled

    _spelled: Sequence[str] | None = None
