"""A sink of the rows of a table: its target, and how a batch is written."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, Generic, TypeVar

import pyarrow as pa

from penstock.core.errors import OptionError, Permanent, PlanError, RecordError
from penstock.sdk.columns.names import find_name, fold
from penstock.sdk.database.config import DatabaseSinkConfig
from penstock.sdk.database.connection import Connection
from penstock.sdk.database.names import TableName, did_you_mean_table
from penstock.sdk.database.table_writer import TableWriter
from penstock.sdk.schema_changes import SchemaChanges, as_written
from penstock.sdk.sink import Sink, Writer

T = TypeVar("T", bound=DatabaseSinkConfig)
_NAME_BYTES = 63
"""The size of a name that all systems have."""


class TableSink(Sink[T], Generic[T]):
    """Base class of sinks of tables, also of systems without transactions.

    It creates a missing table, or compares it with the rows, and checks its key.
    """

    parallelism = "one writer"

    @abstractmethod
    def connect(self) -> Connection:
        """Returns a new connection. Raises Transient or Permanent."""

    def check(self) -> None:
        with closing(self.connect()) as connection:
            if not self.config.create and connection.columns(self.table) is None:
                raise self._missing_table(connection)

    def check_schema(self, columns: pa.Schema) -> None:
        dialect = self.dialect
        for field in columns:
            dialect.column(field)

    @property
    @abstractmethod
    def dialect(self) -> Any:
        """The SQL of the system."""

    @property
    def table(self) -> TableName:
        """The target."""
        return TableName.parse(self.config.table)

    def partitioning(self, columns: pa.Schema) -> tuple[int, Sequence[str]] | None:
        return 1, ()

    def target_schema(self, columns: pa.Schema) -> pa.Schema | None:
        with closing(self.connect()) as connection:
            target = connection.columns(self.table)
        if target is None:
            return None
        return as_written(target, columns, self.dialect.types.accepts)

    def change_schema(self, changes: SchemaChanges) -> None:
        if changes.widened or self.config.schema_changes == "fail":
            super().change_schema(changes)
        with closing(self.connect()) as connection:
            for change in changes.missing:
                assert change.rows is not None
                field = pa.field(change.name, change.rows)
                connection.execute(connection.dialect.add_column(self.table, field))
            connection.commit()

    def prepare(self, columns: pa.Schema) -> None:
        super().prepare(columns)
        with closing(self.connect()) as connection, self.without_rows("prepare"):
            self.prepare_ledger(connection)
            if connection.columns(self.table) is None:
                if not self.config.create:
                    raise self._missing_table(connection, columns)
                key = self.primary_key if self.mode == "upsert" else ()
                connection.execute(connection.dialect.create_table(self.table, columns, key))
            else:
                if self.mode == "upsert":
                    self.check_key(connection)
                self.check_table(connection)
            connection.commit()

    @contextmanager
    def without_rows(self, action: str, hint: str | None = None) -> Iterator[None]:
        """Raises Permanent for a statement that is rejected in an action: it has no row."""
        try:
            yield
        except RecordError as error:
            reason = error.message.replace("rejects the row", "rejects the statement")
            raise Permanent(
                f'cannot {action} the table "{self.table}": {reason}', code=error.code, hint=hint
            ) from error

    def prepare_ledger(self, connection: Connection) -> None:
        """Creates the ledger of a sink that has one. The default does nothing."""

    def check_table(self, connection: Connection) -> None:
        """Checks an existing table before the first batch. The default does nothing."""

    def check_key(self, connection: Connection) -> None:
        """Checks that the columns of the primary key identify a row of the table."""
        key = {*map(fold, self.primary_key)}
        keys = connection.unique_keys(self.table)
        if not any({*map(fold, each)} == key for each in keys):
            dialect = connection.dialect
            full = f"{self.table.name}_{'_'.join(self.primary_key)}".encode()
            name = full[:_NAME_BYTES].decode(errors="ignore").strip()
            raise Permanent(
                f'the table "{self.table}" has no unique index on the primary key '
                f"{', '.join(self.primary_key)}",
                code="no-unique-index",
                hint=f"Run CREATE UNIQUE INDEX {dialect.quote(name)} ON "
                f"{dialect.table(self.table)} ({dialect.quote_all(self.primary_key)}).",
            )

    def check_other_keys(self, names: Iterable[Sequence[str | None]]) -> None:
        """Checks that an upsert finds a row of the table by the primary key only.

        For a system whose statement replaces the row that any unique index finds. `names` are the
        columns of the indexes, with None for an expression.
        """
        key = {*map(fold, self.primary_key)}
        for columns in names:
            if not key <= {fold(column) for column in columns if column}:
                shown = ", ".join(column or "an expression" for column in columns)
                raise Permanent(
                    f'the table "{self.table}" has a unique index on {shown} beside the primary '
                    f"key {', '.join(self.primary_key)}, and an upsert may replace a row that this "
                    "index finds",
                    code="other-unique-index",
                    hint="Drop the index, or set primary_key to its columns.",
                )

    def open(self) -> Connection:
        return self.connect()

    def table_writer(
        self, client: Any, partition: int, schema: pa.Schema, *, is_new: bool
    ) -> Writer:
        """Returns a writer of rows. Without `is_new` it writes nothing."""
        target = client.columns(self.table)
        names = [] if target is None else target.names
        found = {name: find_name(name, names) for name in schema.names}
        spelled = {name: names[index] for name, index in found.items() if index >= 0}
        key = self.primary_key if self.mode == "upsert" else ()
        return TableWriter(
            client, self.table, key, spelled, partition, is_new, in_turn=self.writes_each_row
        )

    def _missing_table(self, connection: Connection, columns: pa.Schema | None = None) -> PlanError:
        create = "Set create: true"
        if columns is not None:
            key = self.primary_key if self.mode == "upsert" else ()
            statement = connection.dialect.create_table(self.table, columns, key)
            create = f"Set create: true, or run {statement}"
        similar = did_you_mean_table(self.table, connection.tables())
        return OptionError.of(
            "table", message=f'there is no table "{self.table}"', code="unknown-table",
            hint=f"{similar}; {create}." if similar else f"{create}.",
        )  # fmt: skip
