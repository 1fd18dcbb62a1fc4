"""The sink of Apache Iceberg."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import pyarrow as pa

from penstock.connectors.iceberg.client import TableAccess
from penstock.connectors.iceberg.committing import BatchMarks, Commit
from penstock.connectors.iceberg.config import IcebergSinkConfig
from penstock.connectors.iceberg.partitioning import check_partitions
from penstock.connectors.iceberg.target import (
    HINT,
    Target,
    add_columns,
    check_partitions_of,
    check_widened,
    check_writable,
    create_table,
)
from penstock.connectors.iceberg.types import TYPES, accepts
from penstock.connectors.iceberg.writer import IcebergWriter
from penstock.core.errors import raise_all
from penstock.sdk import BatchId, Receipt, SchemaChanges
from penstock.sdk.columns.names import check_distinct, find_name
from penstock.sdk.lakes.compaction import Compacted, CompactingSink
from penstock.sdk.schema_changes import as_written


class IcebergSink(CompactingSink[IcebergSinkConfig]):
    """Writes rows to a table of Apache Iceberg and creates a missing table.

    Each batch is one snapshot of the table. The same commit sets a property of the table that
    records the batch, so a repeated batch is recognised also after its snapshot was expired. With
    `mode: upsert` rows replace the rows with their primary key, and deletes remove rows: the files
    with these keys are written again without them (copy on write). With `mode: replace` the table
    has the rows of the last batch. Other programs can write to the table at the same time: a commit
    that conflicts with theirs is repeated.

    Columns of the types UUID and time are written from texts, `fixed` from BINARY. A row with
    another text, or with null in a required column, is a dead letter. Columns of a type that
    Iceberg does not have, such as intervals, are an error. Files of a batch that was not committed
    are orphan files.

    ```yaml
    type: iceberg
    from: hourly
    catalog: {type: sql, path: lake/catalog.db, warehouse: lake}
    table: shop.late_by_hour
    mode: upsert
    primary_key: [hour]
    ```
    """

    extra = "iceberg"
    client_modules = ("pyiceberg",)
    acknowledges = "its snapshot is committed"

    def validate(self) -> None:
        super().validate()
        self._access  # noqa: B018

    @cached_property
    def _access(self) -> TableAccess:
        return TableAccess.of(self.config)

    def check(self) -> None:
        table = self._access.open() if self.config.create else self._access.require(HINT)
        if table is None:
            self._access.probe()
        else:
            self._check_table(table)

    def check_schema(self, columns: pa.Schema) -> None:
        check_distinct(columns)
        for field in columns:
            TYPES.check(field)
        raise_all(check_partitions(self.config.partition_by, columns))

    def target_schema(self, columns: pa.Schema) -> pa.Schema | None:
        table = self._access.open()
        if table is None:
            return None
        target = Target(table)
        names = [field.name for field in target.schema.fields]

        def stores(written: pa.Field, field: pa.Field) -> bool:
            stored = target.schema.fields[find_name(written.name, names)].field_type
            return accepts(written, field, stored)

        return as_written(target.columns, columns, stores)

    def change_schema(self, changes: SchemaChanges) -> None:
        if self.config.schema_changes == "fail":
            super().change_schema(changes)
        check_widened(changes)
        add_columns(self._access, changes)

    def prepare(self, columns: pa.Schema) -> None:
        super().prepare(columns)
        config = self.config
        if self._access.open() is None and config.create:
            key = self.primary_key if self.mode == "upsert" else ()
            create_table(self._access, columns, key, config)
        self._check_table(self._access.require(HINT))

    def open(self) -> Target:
        return Target(self._access.require(HINT))

    def writer(
        self, client: Target, batch: BatchId, partition: int, schema: pa.Schema
    ) -> IcebergWriter:
        key = self.primary_key if self.mode == "upsert" else ()
        name = f"part-{batch.number:08d}-{partition:05d}"
        return IcebergWriter(client.refreshed(), name, schema.names, key)

    def commit(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        count = sum(len(receipt.get("files", receipt.get("staged", ()))) for receipt in receipts)
        if not count and (self.mode != "replace" or self._access.open() is None):
            return
        key = self.primary_key if self.mode == "upsert" else ()
        Commit(batch, self.mode, tuple(key), self._access, self._marks).execute(receipts)
        self.compact_by_rule(count)

    def last_batch(self, query: str) -> BatchId | None:
        table = self._access.open()
        return None if table is None else self._marks.last(table, query)

    def small_files(self, size: int) -> int:
        from penstock.connectors.iceberg.compacting import combinable

        return sum(map(len, combinable(self._access.require(HINT), size)))

    def compact(self, size: int) -> Compacted:
        from penstock.connectors.iceberg.compacting import combine

        return combine(self._access, size)

    def close(self) -> None:
        self._access.close()

    @property
    def _marks(self) -> BatchMarks:
        return BatchMarks(f"{self.context.owner}/{self.context.node}")

    def _check_table(self, table: object) -> None:
        check_writable(table, self.config.table)
        check_partitions_of(table, self.config.partition_by)
