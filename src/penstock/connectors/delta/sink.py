"""The sink of Delta Lake."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import pyarrow as pa

from penstock.connectors.delta.client import Location
from penstock.connectors.delta.committing import Commit, Transactions
from penstock.connectors.delta.compacting import combinable, combine
from penstock.connectors.delta.config import DeltaSinkConfig
from penstock.connectors.delta.errors import convert_errors
from penstock.connectors.delta.target import (
    Target,
    add_columns,
    check_partition_columns,
    check_writable,
    create_table,
    open_target,
)
from penstock.connectors.delta.types import TYPES, accepts, is_partition_type
from penstock.connectors.delta.writer import DataFile, DeltaWriter
from penstock.core.errors import OptionError, raise_all
from penstock.sdk import BatchId, Receipt, SchemaChanges
from penstock.sdk.columns.checks import check_column
from penstock.sdk.columns.names import check_distinct
from penstock.sdk.lakes.compaction import Compacted, CompactingSink
from penstock.sdk.schema_changes import as_written


class DeltaSink(CompactingSink[DeltaSinkConfig]):
    """Writes rows to a table of Delta Lake and creates a missing table.

    Each batch is one version of the table, which also records the batch. With `mode: upsert` rows
    replace the rows with their primary key, and deletes remove rows (MERGE); with `mode: replace`
    the table has the rows of the last batch. Other programs can write to the table at the same
    time: a commit that conflicts with theirs is repeated.

    A row with null in a column that does not allow it is a dead letter. Columns of a type that
    Delta Lake does not have, such as intervals, are an error. Tables with constraints, generated
    columns or mapped columns cannot be written to. Files of a batch that was not committed are
    removed by VACUUM.

    ```yaml
    type: delta
    from: hourly
    path: lake/late_by_hour
    mode: upsert
    primary_key: [hour]
    ```
    """

    extra = "delta"
    client_modules = ("deltalake",)
    acknowledges = "its version is committed"

    def validate(self) -> None:
        super().validate()
        self._location  # noqa: B018

    @cached_property
    def _location(self) -> Location:
        return Location.of(self.config)

    def check(self) -> None:
        location = self._location
        if not self.config.create:
            open_target(location)
        table = location.open()
        if table is None:
            with convert_errors("write to", location.path):
                location.probe()
        else:
            check_writable(table, location.path)
            check_partition_columns(table, self.config.partition_by)

    def check_schema(self, columns: pa.Schema) -> None:
        check_distinct(columns)
        for field in columns:
            TYPES.check(field)
        names = self.config.partition_by
        errors = [
            error
            for index, name in enumerate(names)
            for error in check_column(
                name, columns, "partition_by", index, accepts=is_partition_type,
                expected=f"Cast the column in a transform: CAST({name} AS STRING).",
            )
        ]  # fmt: skip
        raise_all(errors)
        if names and {*names} >= {*columns.names}:
            raise OptionError.of(
                "partition_by", message="partition_by contains all columns",
                hint="Leave out a column, which is stored in the files.",
            )  # fmt: skip

    def target_schema(self, columns: pa.Schema) -> pa.Schema | None:
        table = self._location.open()
        return None if table is None else as_written(Target.of(table).columns, columns, accepts)

    def change_schema(self, changes: SchemaChanges) -> None:
        if changes.widened or self.config.schema_changes == "fail":
            super().change_schema(changes)
        add_columns(self._location, changes)

    def prepare(self, columns: pa.Schema) -> None:
        super().prepare(columns)
        location = self._location
        if location.open() is None and self.config.create:
            create_table(location, columns, self.config.partition_by)
        table = open_target(location)
        check_writable(table, location.path)
        check_partition_columns(table, self.config.partition_by)

    def open(self) -> Target:
        return Target.of(open_target(self._location))

    def writer(
        self, client: Target, batch: BatchId, partition: int, schema: pa.Schema
    ) -> DeltaWriter:
        key = self.primary_key if self.mode == "upsert" else ()
        return DeltaWriter(self._location, client, batch, partition, schema, key)

    def commit(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        files = [DataFile(**file) for receipt in receipts for file in receipt["files"]]
        location = self._location
        if not files and (self.mode != "replace" or location.open() is None):
            return
        key: tuple[str, ...] = ()
        if self.mode == "upsert":
            target = Target.of(open_target(location))
            key = tuple(field.name for field in target.fields(self.primary_key))
        transactions = self._transactions(batch.query)
        Commit(batch, self.mode, key, location, transactions).execute(files)
        self.compact_by_rule(len(files))

    def last_batch(self, query: str) -> BatchId | None:
        table = self._location.open()
        return None if table is None else self._transactions(query).last(table, query)

    def small_files(self, size: int) -> int:
        return sum(map(len, combinable(open_target(self._location), size)))

    def compact(self, size: int) -> Compacted:
        return combine(self._location, size)

    def _transactions(self, query: str) -> Transactions:
        return Transactions(f"penstock/{self.context.owner}/{self.context.node}/{query}")
