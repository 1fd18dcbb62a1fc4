"""The source of PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa

from penstock.connectors.postgres.changes import PostgresChangesSource
from penstock.connectors.postgres.config import PostgresSourceConfig
from penstock.connectors.postgres.connection import PostgresConnection
from penstock.connectors.postgres.privileges import check_privileges
from penstock.connectors.postgres.texts import to_rows
from penstock.core.errors import Permanent
from penstock.sdk import Component, Context
from penstock.sdk.database import Connection, TableSource
from penstock.sdk.database.row_conversion import RowConversion


class PostgresSource(TableSource[PostgresSourceConfig]):
    """Reads a table or a query of a PostgreSQL database, or the changes of a table.

    Rows are read in the order of `cursor_columns`, by default of a primary key of one integer. With
    `watch` the source also reads rows that come later in this order. Updates are read if a cursor
    column has the time of the last change; deletions are not read.

    A row whose transaction commits after rows later in the order is read: with `watch` the source
    reads rows up to a position when all transactions that might write rows before it have ended.
    For a cursor column of times these are the transactions of the database, otherwise those that
    write to the table. So a transaction that stays open delays new rows. Values that are assigned
    before the transaction begins, such as IDs that an application reserves, are not covered.

    With `changes: true` the source reads the rows of the table, then its inserts, updates and
    deletes in the order of their commits, by logical replication (the output plugin `pgoutput`).
    The snapshot is read in chunks, without locks and without a long transaction, and is merged with
    the changes that are committed meanwhile. A run resumes where the last run stopped, also within
    the snapshot. Changes are in a journal on disk before the slot advances. A change of the primary
    key is a delete and an insert. Values that the server does not send (TOAST, generated columns)
    are read from the table; without a current row the update is a dead letter. A transaction may be
    in several batches, and may be larger than the memory. The metadata columns are `lsn`,
    `transaction`, `commit_time`, `snapshot` and `received`. A lost slot, or one that another
    pipeline has read, is an error. Columns that are added to the table are added to the stream, and
    types are widened. The server needs `wal_level = logical`, and the user the attribute
    REPLICATION, SELECT on the table, and a publication of the table or the right to create it. The
    slot keeps the log of the server until the changes are read: drop it with the pipeline.

    The columns are those of the table. `numeric` without a precision is DECIMAL(38, 18); declare
    the column as STRING in `schema` for other numbers. A domain has its base type, also in arrays.
    Types without a counterpart, such as enums, composite types, ranges, intervals and geometric
    types, are STRING, with the text of PostgreSQL; that of `money` follows `lc_monetary`. A value
    that does not fit its column becomes a dead letter, such as an infinite date, or an array of
    several dimensions or of another lower bound than 1: declare the column as STRING to read them.

    ```yaml
    type: postgres
    url: postgresql://127.0.0.1:5432/shop
    auth: {username: penstock, password: "${SHOP_PASSWORD}"}
    table: public.orders
    changes: true
    ```
    """

    extra = "postgres"
    client_modules = ("psycopg",)

    @classmethod
    def create(
        cls, config: PostgresSourceConfig, context: Context | None = None
    ) -> Component[PostgresSourceConfig]:
        if config.changes and not (context is not None and context.lookup):
            return PostgresChangesSource(config, context)
        return super().create(config, context)

    def check(self) -> None:
        super().check()
        with closing(self.connect()) as connection:
            if self._table is not None:
                check_privileges(connection, self._table, ["SELECT"])
            if self.config.watch and self.config.min_age is None:
                _check_primary(connection)

    def check_access(self) -> bool:
        self.check()
        return True

    def connect(self) -> PostgresConnection:
        connection = PostgresConnection(self.config)
        connection.client.read_only = True
        return connection

    def query_columns(self, connection: Connection, query: str) -> pa.Schema:
        assert isinstance(connection, PostgresConnection)
        return connection.query_columns(query)

    def min_age_condition(self, column: str, seconds: float) -> str:
        return f"{column} <= now() - make_interval(secs => {seconds!r})"

    def open_transactions(self, connection: Connection, *, by_time: bool) -> frozenset[Any]:
        assert isinstance(connection, PostgresConnection)
        table = None if self._table is None else connection.dialect.table(self._table)
        return connection.open_transactions(None if by_time else table)

    def read_query(
        self, query: str, parameters: Sequence[Any], conversion: RowConversion
    ) -> Iterator[pa.RecordBatch]:
        connection = self._connection
        assert isinstance(connection, PostgresConnection)
        texts = connection.copy_rows(query, parameters, conversion.columns.names)
        yield from conversion.batches(texts, to_rows)


def _check_primary(connection: PostgresConnection) -> None:
    """Raises Permanent for a standby, which does not have the open transactions of its primary."""
    ((is_standby,),) = connection.query("SELECT pg_is_in_recovery()")
    if is_standby:
        raise Permanent(
            f"{connection.config.address} is a standby, which does not have the open transactions "
            "of its primary: with watch, rows that are committed late would be missed",
            code="standby",
            hint="Set url to the primary, or cursor_columns to a time and min_age to the longest "
            "time of a transaction.",
        )
