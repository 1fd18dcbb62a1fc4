"""The sink of aggregates."""

from __future__ import annotations

from contextlib import closing

import pyarrow as pa

from penstock.connectors.postgres.aggregate.columns import Columns
from penstock.connectors.postgres.aggregate.config import PostgresAggregateSinkConfig
from penstock.connectors.postgres.aggregate.merge import Merge
from penstock.connectors.postgres.aggregate.table import AggregateTable, missing_table
from penstock.connectors.postgres.connection import PostgresConnection
from penstock.connectors.postgres.sink import PostgresSink
from penstock.connectors.postgres.types import DIALECT
from penstock.core.errors import Permanent
from penstock.sdk.database import Connection, TableName

_SCHEMA = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = to_regclass(\0)
"""
_CURRENT_SCHEMA = "SELECT current_schema()"
_MIN_VERSION = 14


class PostgresAggregateSink(PostgresSink):
    """Writes rows to a table of a PostgreSQL database and keeps its aggregates in another table.

    The rows are written to the landing table `table` as by the sink `postgres`, with the same
    modes. Triggers of the landing table maintain `aggregate_table`, which has a row for each group
    of landing rows: `sum`, `count`, `avg`, `min` and `max` of these rows. The triggers run in the
    transaction of the batch, so the aggregates belong to the landing rows at each moment, also if
    a batch is repeated and if other programs change landing rows.

    With `mode: upsert` an update replaces the values of the row with its primary key in all
    aggregates, and a delete removes them. A group without rows has no row. Sums of numbers are
    exact; for columns of DOUBLE only their results are rounded. A row whose aggregate overflows
    its type becomes a dead letter, as a row that the landing table rejects.

    Changes of landing rows by several writers wait for each other until the end of a transaction.
    With other `group_by` or `aggregates` than in the last run the aggregates are computed from the
    landing rows again. Aggregates of a table that was removed from the pipeline are maintained
    until its triggers, named `penstock_...`, are dropped.

    The server needs PostgreSQL 14 or later. The user needs the privileges of the sink `postgres`,
    INSERT, SELECT, UPDATE and DELETE on the aggregate table, TRIGGER on the landing table and
    CREATE on the schema of the aggregate table. With `min` or `max` the user owns the landing
    table, which gets an index of the groups.

    ```yaml
    type: postgres_aggregate
    from: orders
    url: postgresql://127.0.0.1:5432/shop
    auth: {username: penstock, password: "${SHOP_PASSWORD}"}
    table: orders
    mode: upsert
    primary_key: [id]
    aggregate_table: totals
    group_by: [customer]
    aggregates:
      orders: {function: count}
      total: {function: sum, column: amount}
      mean: {function: avg, column: amount, type: "DECIMAL(12, 2)"}
      largest: {function: max, column: amount}
    ```
    """

    config_type = PostgresAggregateSinkConfig
    config: PostgresAggregateSinkConfig
    recomputed_options = frozenset({"group_by", "aggregates"})

    def check(self) -> None:
        super().check()
        with closing(self.connect()) as connection:
            _check_version(connection)
            if not self.config.create and connection.columns(self._aggregate_table) is None:
                raise missing_table(self._aggregate_table, "Create it.")

    def check_schema(self, columns: pa.Schema) -> None:
        super().check_schema(columns)
        Columns.of(self.config, columns)

    def prepare(self, columns: pa.Schema) -> None:
        super().prepare(columns)
        with closing(self.connect()) as connection:
            _check_version(connection)
            landing = connection.columns(self.table)
            assert landing is not None
            merge = Merge(
                _qualified(connection, self.table), _qualified(connection, self._aggregate_table),
                Columns.of(self.config, landing),
            )  # fmt: skip
            AggregateTable(merge, connection).prepare(
                create=self.config.create, add_columns=self.config.schema_changes == "apply"
            )
            connection.commit()

    @property
    def _aggregate_table(self) -> TableName:
        return TableName.parse(self.config.aggregate_table)


def _qualified(connection: Connection, table: TableName) -> TableName:
    """Returns the name of a table with its schema, also of a table to be created."""
    found = connection.query(_SCHEMA, (DIALECT.table(table),))
    if found:
        return TableName(found[0])
    if len(table.parts) > 1:
        return table
    return TableName((*connection.query(_CURRENT_SCHEMA)[0], *table.parts))


def _check_version(connection: PostgresConnection) -> None:
    version = connection.client.info.server_version // 10_000
    if version < _MIN_VERSION:
        raise Permanent(
            f"expected PostgreSQL {_MIN_VERSION} or later, found {version}", code="old-server"
        )
