"""The sink of ClickHouse."""

from __future__ import annotations

from contextlib import closing

import pyarrow as pa

from penstock.connectors.clickhouse.config import ClickhouseSinkConfig
from penstock.connectors.clickhouse.tables import Engine
from penstock.connectors.clickhouse.types import DIALECT, ClickhouseDialect
from penstock.connectors.clickhouse.writing import WritingConnection
from penstock.core.errors import OptionError, Permanent, PlanError
from penstock.sdk import BatchId, Capability, Writer
from penstock.sdk.columns.names import fold
from penstock.sdk.database import Connection, TableSink
from penstock.sdk.database.types import declared_type


class ClickhouseSink(TableSink[ClickhouseSinkConfig]):
    """Writes rows to a table of a ClickHouse database, as Arrow over HTTP.

    ClickHouse has no transactions: rows are visible when they are inserted, and a batch that failed
    is inserted again. Each insert has a deduplication token, by which the server ignores rows that
    it has already inserted. This is effective for Replicated and Shared engines, and for a
    MergeTree with `non_replicated_deduplication_window` above 0, as tables that the sink creates
    have it; the server keeps the tokens of the last inserts only. Other engines then have rows
    twice.

    With `mode: upsert` the table is a ReplacingMergeTree with a version column and a deleted
    column, which the sink writes. A row has the time of the server's clock as its version, and a
    delete is a row with 1 in the deleted column. Read the table with FINAL, since the server merges
    rows of a key later. With `deletes: remove` the table has neither of the two columns: the server
    keeps the last inserted row of a key, and each batch waits until its deleted rows are removed.

    A row with a value that ClickHouse would clamp, wrap or round becomes a dead letter: an integer
    beyond the range, a null in a column that is not Nullable, a Date before 1970 or after 2149, a
    DateTime64 before 1900 or after 2299. Lists, maps and structs have no nulls in ClickHouse.

    The user needs the privileges SELECT and INSERT on the table, and CREATE TABLE on the database
    for a new table.

    ```yaml
    type: clickhouse
    from: hourly
    url: clickhouse://127.0.0.1:8123/shop
    auth: {username: penstock, password: "${SHOP_PASSWORD}"}
    table: late_by_hour
    mode: upsert
    primary_key: [hour]
    ```
    """

    extra = "clickhouse"
    client_modules = ("clickhouse_connect",)
    capabilities = frozenset(
        {Capability.ROWS, Capability.ORDERED, Capability.UPSERT, Capability.DELETE}
    )
    acknowledges = "the server has inserted it"
    max_rows_per_write = 100_000
    """One insert is one block and one part of the server, so few large inserts are fast."""

    @property
    def dialect(self) -> ClickhouseDialect:
        config = self.config
        return ClickhouseDialect(
            DIALECT.types, parameter=DIALECT.parameter, indexes_rows=False, engine=config.engine,
            order_columns=config.order_columns, column_types=config.column_types,
            version_column=config.version_column, deleted_column=config.deleted_column,
            removes=config.deletes == "remove",
        )  # fmt: skip

    def connect(self) -> WritingConnection:
        return WritingConnection(self.config, self.dialect)

    def check_schema(self, columns: pa.Schema) -> None:
        super().check_schema(columns)
        named = {
            "column_types": [*self.config.column_types],
            "order_columns": self.config.order_columns,
        }
        for option, names in named.items():
            for name in names:
                if name not in columns.names:
                    raise OptionError.of(
                        option, message=f'the rows have no column "{name}"', code="unknown-column",
                        hint=f"Remove {name} from {option}.",
                    )  # fmt: skip

    def target_schema(self, columns: pa.Schema) -> pa.Schema | None:
        target = super().target_schema(columns)
        if target is None or self.mode != "upsert" or self.dialect.removes:
            return target
        with closing(self.connect()) as connection:
            own = self._own_columns(connection.engine(self.table))
        for name in own:
            if fold(name) in map(fold, columns.names):
                raise PlanError(
                    f'column "{name}" is written by the sink', code="invalid-name",
                    hint="Rename the column in a transform, or set version_column and "
                    "deleted_column.",
                )  # fmt: skip
        return pa.schema([field for field in target if field.name not in own])

    def check_key(self, connection: Connection) -> None:
        """Checks that the engine keeps the last row of each key, and removes deleted rows."""
        assert isinstance(connection, WritingConnection)
        engine = connection.engine(self.table)
        assert engine is not None
        if not self.dialect.removes:
            self._check_version(connection, self._own_columns(engine)[0])
        elif not engine.keeps_one_row:
            raise self._not_replacing(engine.definition.partition(" ")[0])
        if {*map(fold, engine.sorting_columns)} != {*map(fold, self.primary_key)}:
            raise Permanent(
                f'the table "{self.table}" has ORDER BY {engine.sorting_key or "tuple()"}, and the '
                f"primary key is {', '.join(self.primary_key)}",
                code="no-unique-index",
                hint="Set primary_key to the columns of ORDER BY, or write to a new table.",
            )

    def _check_version(self, connection: WritingConnection, name: str) -> None:
        """Checks that the version column holds microseconds since 1970."""
        columns = connection.columns(self.table)
        assert columns is not None
        found = declared_type(columns.field(name))
        if found not in ("UInt64", "Int64"):
            raise Permanent(
                f'expected the type UInt64 of the version column "{name}" of "{self.table}", found '
                f"{found}",
                code="wrong-type",
                hint="Create a table with a version of type UInt64.",
            )

    def writer(
        self, client: WritingConnection, batch: BatchId, partition: int, schema: pa.Schema
    ) -> Writer:
        node = f"{self.context.owner}/{self.context.node}"
        client.begin(f"{node}/{batch.query}/{batch.number}/{batch.content}/{partition}")
        return self.table_writer(client, partition, schema, is_new=True)

    def _own_columns(self, engine: Engine | None) -> tuple[str, str]:
        """Returns the columns of the version and of deleted rows."""
        own = None if engine is None else engine.replaces_by
        if own is None:
            name = "no engine" if engine is None else engine.definition.partition(" ")[0]
            raise self._not_replacing(name)
        return own

    def _not_replacing(self, engine: str) -> Permanent:
        arguments = "" if self.dialect.removes else "VERSION, IS_DELETED"
        return Permanent(
            f'the table "{self.table}" has {engine}, which does not replace and delete rows',
            code="no-unique-index",
            hint=f"Create the table with ENGINE = ReplacingMergeTree({arguments}).",
        )
