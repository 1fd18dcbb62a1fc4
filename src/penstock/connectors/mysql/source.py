"""The source of MySQL and MariaDB."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa

from penstock.connectors.mysql.changes import MysqlChangesSource
from penstock.connectors.mysql.config import MysqlSourceConfig
from penstock.connectors.mysql.connection import MysqlConnection
from penstock.connectors.mysql.replicas import check_primary
from penstock.connectors.mysql.texts import exact_item, to_rows
from penstock.connectors.mysql.transactions import open_transactions
from penstock.sdk import Component, Context
from penstock.sdk.columns.names import fold
from penstock.sdk.database import Connection, TableSource
from penstock.sdk.database.row_conversion import RowConversion
from penstock.sdk.database.types import declared_type

_UNORDERED = re.compile(r"enum|set|bit|float", re.IGNORECASE)
"""Types of which a value is compared as a text, or as another number, and is sorted as a number."""


class MysqlSource(TableSource[MysqlSourceConfig]):
    """Reads a table or a query of a MySQL or MariaDB database, or the changes of a table.

    Rows are read in the order of `cursor_columns`, by default of a primary key of one integer. With
    `watch` the source also reads rows that come later in this order. Updates are read if a cursor
    column has the time of the last change, in UTC; deletions are not read. Columns of ENUM, SET,
    BIT and FLOAT are no cursor columns, since MySQL sorts and compares them differently: a primary
    key is read in the order of its other columns.

    A row whose transaction commits after rows later in the order is read: with `watch` the source
    reads rows up to a position when all transactions that might write rows before it have ended,
    according to `information_schema.INNODB_TRX`. For a cursor column of times these are the
    transactions of the server, otherwise those that have written. So a transaction that stays open
    delays new rows. The user needs the privilege PROCESS; without it the source reads rows at once,
    or by `min_age`, and misses such rows. Values that are assigned before the transaction begins,
    and transactions of the primary of a replica, are not covered. A replica that is read-only is
    an error without `min_age`, if the user has the privilege REPLICATION CLIENT (MariaDB:
    SLAVE MONITOR).

    With `changes: true` the source reads the rows of the table, then its inserts, updates and
    deletes in the order of their commits, from the binary log. The snapshot is read in chunks,
    and is merged with the changes that are committed meanwhile: in MariaDB without locks, in
    MySQL with shared locks for the time of a chunk. A run resumes where the last run stopped,
    also within the snapshot. A change of the primary key is a delete and an insert. A change of
    a large transaction may be in another batch than the others. The metadata columns are `lsn`,
    `transaction`, `commit_time`, `snapshot` and `received`. After a failover to another server
    the place in its log is found by GTIDs. A log that the server has removed or reset is an
    error. Columns that are added to the table are added to the stream, and types are widened.
    The server needs `binlog_format = ROW` and `binlog_row_metadata = FULL`, the table a primary
    key, and the user the privileges REPLICATION SLAVE, REPLICATION CLIENT, and SELECT on the
    table.

    The columns are those of the table. TINYINT(1) and BIT(1) are BOOLEAN, BIGINT UNSIGNED is
    DECIMAL(20,0), DATETIME is TIMESTAMP_NTZ, and TIMESTAMP is TIMESTAMP. DECIMAL of more than
    38 digits, TIME, ENUM, SET, UUID and INET are STRING, and BIT(n) is BINARY. A value that
    does not fit its column, such as the date `0000-00-00`, becomes a dead letter.

    ```yaml
    type: mysql
    url: mysql://127.0.0.1:3306/shop
    auth: {username: penstock, password: "${SHOP_PASSWORD}"}
    table: orders
    watch: true
    ```
    """

    extra = "mysql"
    client_modules = ("pymysql",)

    @classmethod
    def create(
        cls, config: MysqlSourceConfig, context: Context | None = None
    ) -> Component[MysqlSourceConfig]:
        if config.changes and not (context is not None and context.lookup):
            return MysqlChangesSource(config, context)
        return super().create(config, context)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._declared: Mapping[str, str] | None = None

    def check(self) -> None:
        super().check()
        if self.config.watch and self.config.min_age is None:
            with closing(self.connect()) as connection:
                check_primary(connection)

    def connect(self) -> MysqlConnection:
        return MysqlConnection(self.config)

    def query_columns(self, connection: Connection, query: str) -> pa.Schema:
        assert isinstance(connection, MysqlConnection)
        return connection.query_columns(query)

    def unordered_columns(self) -> Collection[str]:
        columns = self._target_columns()
        return {each.name for each in columns if _UNORDERED.match(declared_type(each))}

    def min_age_condition(self, column: str, seconds: float) -> str:
        return f"{column} <= now(6) - INTERVAL {seconds!r} SECOND"

    def open_transactions(self, connection: Connection, *, by_time: bool) -> frozenset[Any]:
        assert isinstance(connection, MysqlConnection)
        return open_transactions(connection, only_writers=not by_time)

    def select_item(self, field: pa.Field) -> str:
        quoted = self._connection.dialect.quote(field.name)
        return exact_item(quoted, self._declared_type(field.name))

    def key_values(self, keys: pa.RecordBatch) -> Sequence[Sequence[Any]]:
        """Returns keys with numbers in place of the bytes of BIT, which MySQL does not compare."""
        are_bits = [
            pa.types.is_binary(each.type) and self._declared_type(each.name).startswith("bit")
            for each in keys.schema
        ]
        return [
            [
                int.from_bytes(value) if is_bits and value is not None else value
                for value, is_bits in zip(row, are_bits, strict=True)
            ]
            for row in super().key_values(keys)
        ]

    def read_query(
        self, query: str, parameters: Sequence[Any], conversion: RowConversion
    ) -> Iterator[pa.RecordBatch]:
        connection, is_read = self._connection, False
        assert isinstance(connection, MysqlConnection)
        try:
            texts = connection.texts(query, parameters, conversion.columns.names)
            yield from conversion.batches(texts, to_rows)
            is_read = True
        finally:
            if not is_read:
                self.close()

    def _declared_type(self, name: str) -> str:
        if self._declared is None:
            columns = self._target_columns()
            self._declared = {fold(each.name): declared_type(each) for each in columns}
        return self._declared.get(fold(name), "")
