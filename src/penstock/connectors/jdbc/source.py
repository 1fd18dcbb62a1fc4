"""The source of JDBC."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa

from penstock.connectors.jdbc.config import JdbcSourceConfig
from penstock.connectors.jdbc.connection import JdbcConnection
from penstock.connectors.jdbc.dialects import JdbcDialect
from penstock.connectors.jdbc.reading import to_rows
from penstock.sdk.columns.names import find_name
from penstock.sdk.database import Connection, RangedSource
from penstock.sdk.database.row_conversion import RowConversion
from penstock.sdk.database.types import declared_type

_BITS = re.compile(r"b'([01]{1,64})'|([0-9]{1,20})")


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

    def key_values(self, keys: pa.RecordBatch) -> Sequence[Sequence[Any]]:
        """Returns keys with numbers in place of the texts of BIT of MySQL."""
        rows, dialect = super().key_values(keys), self._connection.dialect
        assert isinstance(dialect, JdbcDialect)
        if "BIT" not in dialect.unordered:
            return rows
        columns, names = self._target_columns(), self._names()
        found = [find_name(each.name, names) for each in keys.schema]
        are_bits = [
            index >= 0
            and declared_type(columns.field(index)) == "BIT"
            and pa.types.is_string(key.type)
            for index, key in zip(found, keys.schema, strict=True)
        ]
        return [
            [_number(value) if bits else value for value, bits in zip(row, are_bits, strict=True)]
            for row in rows
        ]

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


def _number(bits: str | None) -> int | str | None:
    """Returns the number of BIT in the text of a driver: of MySQL as 5, of MariaDB as b'101'."""
    match = _BITS.fullmatch(bits or "")
    if match is None:
        return bits
    return int(match[1], 2) if match[1] else int(match[2])
