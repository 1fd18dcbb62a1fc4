"""A sink that writes rows to a table in transactions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, Generic, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import OptionError, Permanent, PlanError, RecordError
from penstock.core.text import did_you_mean
from penstock.sdk.bisect_failures import bisect_failures
from penstock.sdk.capability import Capability
from penstock.sdk.columns.names import find_name, fold
from penstock.sdk.database.config import DatabaseSinkConfig
from penstock.sdk.database.connection import Connection
from penstock.sdk.database.ledger import Ledger
from penstock.sdk.database.names import TableName
from penstock.sdk.keys import split_null_keys
from penstock.sdk.operations import Operation
from penstock.sdk.record import Failure
from penstock.sdk.schema_changes import SchemaChanges, as_written
from penstock.sdk.sink import BatchId, Receipt, Sink, Writer

REPLACED = -1
"""The writer in the ledger that has removed the rows before a batch, with `mode: replace`."""


T = TypeVar("T", bound=DatabaseSinkConfig)


class DatabaseSink(Sink[T], Generic[T]):
    """Base class of sinks of tables. Define `connect`.

    A writer writes its part of a batch in one transaction, which also records the batch in the
    ledger. A batch of one writer becomes visible as a whole.
    """

    capabilities = frozenset(
        {
            Capability.ROWS,
            Capability.ORDERED,
            Capability.EXACTLY_ONCE,
            Capability.UPSERT,
            Capability.DELETE,
            Capability.REPLACE,
        }
    )
    acknowledges = "its transaction is committed"
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

    @property
    def ledger(self) -> Ledger:
        """The ledger of the sink, beside the table."""
        return Ledger.beside(self.table, f"{self.context.owner}/{self.context.node}")

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
        with closing(self.connect()) as connection:
            self.ledger.create(connection)
            if connection.columns(self.table) is None:
                if not self.config.create:
                    raise self._missing_table(connection, columns)
                key = self.primary_key if self.mode == "upsert" else ()
                connection.execute(connection.dialect.create_table(self.table, columns, key))
            else:
                if self.mode == "upsert":
                    self._check_key(connection)
                self.check_table(connection)
            connection.commit()

    def check_table(self, connection: Connection) -> None:
        """Checks an existing table before the first batch. The default does nothing."""

    def _check_key(self, connection: Connection) -> None:
        """Checks that the columns of the primary key identify a row of the table."""
        key = {*map(fold, self.primary_key)}
        keys = connection.unique_keys(self.table)
        if not any({*map(fold, each)} == key for each in keys):
            dialect = connection.dialect
            name = f"{self.table.name}_{'_'.join(self.primary_key)}"
            raise Permanent(
                f'the table "{self.table}" has no unique index on the primary key '
                f"{', '.join(self.primary_key)}",
                code="no-unique-index",
                hint=f"Run CREATE UNIQUE INDEX {dialect.quote(name)} ON "
                f"{dialect.table(self.table)} ({dialect.quote_all(self.primary_key)}).",
            )

    def open(self) -> Connection:
        return self.connect()

    def writer(
        self, client: Connection, batch: BatchId, partition: int, schema: pa.Schema
    ) -> Writer:
        client.rollback()
        is_new = self.ledger.claim(client, batch, partition)
        if is_new and self.mode == "replace":
            self._remove_rows(client, batch)
        target = client.columns(self.table)
        names = [] if target is None else target.names
        found = {name: find_name(name, names) for name in schema.names}
        spelled = {name: names[index] for name, index in found.items() if index >= 0}
        key = self.primary_key if self.mode == "upsert" else ()
        return TableWriter(client, self.table, key, spelled, partition, is_new)

    def commit(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        if self.mode == "replace" and not receipts:
            with closing(self.connect()) as connection:
                if self._is_prepared(connection):
                    self._remove_rows(connection, batch)
                connection.commit()

    def last_batch(self, query: str) -> BatchId | None:
        with closing(self.connect()) as connection:
            return self.ledger.last(connection, query) if self._is_prepared(connection) else None

    def _is_prepared(self, connection: Connection) -> bool:
        return connection.columns(self.ledger.table) is not None

    def _remove_rows(self, connection: Connection, batch: BatchId) -> None:
        """Removes the rows before a batch, once."""
        if self.ledger.claim(connection, batch, REPLACED):
            connection.execute(f"DELETE FROM {connection.dialect.table(self.table)}")

    def _missing_table(self, connection: Connection, columns: pa.Schema | None = None) -> PlanError:
        create = "Set create: true"
        if columns is not None:
            key = self.primary_key if self.mode == "upsert" else ()
            statement = connection.dialect.create_table(self.table, columns, key)
            create = f"Set create: true, or run {statement}"
        similar = did_you_mean(str(self.table), map(str, connection.tables()))
        return OptionError.of(
            "table", message=f'there is no table "{self.table}"', code="unknown-table",
            hint=f"{similar}; {create}." if similar else f"{create}.",
        )  # fmt: skip


class TableWriter(Writer):
    """A writer of a part of a batch, in the transaction of a connection.

    With a `key` rows are upserted, and deleted by their operation. `names` are the names of the
    table for columns of the rows. Without `is_new` the rows are in the table already.
    """

    def __init__(
        self, connection: Connection, table: TableName, key: Sequence[str],
        names: Mapping[str, str], number: int, is_new: bool,
    ) -> None:  # fmt: skip
        self._connection, self._table, self._names = connection, table, names
        self._key = tuple(names.get(name, name) for name in key)
        self._number, self._is_new = number, is_new

    def write(
        self,
        rows: pa.RecordBatch,
        payloads: pa.BinaryArray | None = None,
        operations: pa.StringArray | None = None,
    ) -> Sequence[Failure]:
        if not self._is_new:
            return ()
        rows = rows.rename_columns([self._names.get(n, n) for n in rows.schema.names])
        if not self._key:
            return list(self._apply(self._insert, rows, _indexes(pa.repeat(True, rows.num_rows))))
        has_key, failures = split_null_keys(rows, self._key)
        deleted = pa.repeat(False, rows.num_rows)
        if operations is not None:
            deleted = pc.equal(operations, Operation.DELETE.value)
        keys = rows.select(list(self._key))
        failures += self._apply(self._delete, keys, _indexes(pc.and_(has_key, deleted)))
        kept = _indexes(pc.and_(has_key, pc.invert(deleted)))
        return [*failures, *self._apply(self._upsert, rows, kept)]

    def commit(self) -> Receipt:
        self._connection.commit()
        return {"writer": self._number}

    def abort(self) -> None:
        self._connection.rollback()

    def _insert(self, rows: pa.RecordBatch) -> None:
        self._connection.insert(self._table, rows)

    def _upsert(self, rows: pa.RecordBatch) -> None:
        self._connection.upsert(self._table, rows, self._key)

    def _delete(self, keys: pa.RecordBatch) -> None:
        self._connection.delete(self._table, keys)

    def _apply(
        self, function: Callable[[pa.RecordBatch], None], rows: pa.RecordBatch, index: pa.Array
    ) -> Iterator[Failure]:
        """Applies a function to the rows of an index, and yields the rows that it rejects."""
        rows = rows if len(index) == rows.num_rows else rows.take(index)

        def attempt(start: int, stop: int) -> None:
            self._connection.savepoint()
            try:
                function(rows.slice(start, stop - start))
            except RecordError:
                self._connection.restore()
                raise
            self._connection.release()

        for start, _, error in bisect_failures(rows.num_rows, attempt):
            if isinstance(error, RecordError):
                yield Failure(index[start].as_py(), error)


def _indexes(mask: pa.BooleanArray) -> pa.Array:
    return pc.indices_nonzero(mask)
