"""The source of Apache Iceberg."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from penstock.connectors.iceberg.client import TableAccess
from penstock.connectors.iceberg.config import IcebergSourceConfig
from penstock.connectors.iceberg.discovery import CatalogListing
from penstock.connectors.iceberg.reader import METADATA, Reader
from penstock.connectors.iceberg.snapshots import History, IcebergFile
from penstock.connectors.iceberg.target import old_format
from penstock.connectors.iceberg.types import row_schema
from penstock.core.errors import OptionError
from penstock.sdk import Offset, Read
from penstock.sdk.database.listing import ListedSource
from penstock.sdk.lakes.files import data_gone
from penstock.sdk.lakes.source import LakeSource

HINT = "Correct table, or write the table first."


class IcebergSource(LakeSource[IcebergSourceConfig], ListedSource):
    """Reads a table of Apache Iceberg, then the rows that later snapshots add, or all changes.

    The first run reads the table as it is at a snapshot, by default the latest one; later runs and
    `watch` read the snapshots after it. A snapshot that removes or changes rows (DELETE, UPDATE,
    MERGE, overwriting) is an error, unless `changes` is set. A snapshot that only compacts files
    has no rows to read.

    With `changes: true` rows are changes: the rows of the first snapshot are inserts, then each
    snapshot has deletes of all rows of the files that it removes, and inserts of all rows of the
    files that it adds. Changes as delete files (merge on read) cannot be read.

    The metadata columns are `path`, `snapshot_id`, `sequence_number` and `committed_at`. The
    columns are those of the table, found by their IDs: a column that is renamed is still read, and
    one that is added later is not read until the pipeline starts with new state. Position deletes
    and deletion vectors are applied. Tables of version 1 of the format, tables with equality
    deletes, and files that are not Parquet cannot be read.

    ```yaml
    type: iceberg
    catalog: {type: sql, path: lake/catalog.db, warehouse: lake}
    table: shop.orders
    watch: true
    ```
    """

    extra = "iceberg"
    client_modules = ("pyiceberg",)
    declares_primary_key = True
    example_table = "penstock.discovery"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._history: History | None = None

    def __getstate__(self) -> Mapping[str, Any]:
        return {**super().__getstate__(), "_history": None}

    def validate(self) -> None:
        super().validate()
        self._access  # noqa: B018

    @cached_property
    def _access(self) -> TableAccess:
        return TableAccess.of(self.config)

    def connect(self) -> CatalogListing:
        return CatalogListing(self._access)

    def check(self) -> None:
        self._first(self._open())

    def infer_schema(self) -> pa.Schema | None:
        table = self._open()
        return row_schema(self._first_schema(table, self._first(table)).fields)

    def infer_primary_key(self) -> tuple[str, ...]:
        table = self._open()
        schema = self._first_schema(table, self._first(table))
        return tuple(schema.find_field(number).name for number in schema.identifier_field_ids)

    def metadata_schema(self) -> pa.Schema:
        return METADATA

    def initial_offset(self) -> Offset:
        table = self._open()
        first = self._first(table)
        schema = self._first_schema(table, first).schema_id
        offset = {
            "table": str(table.metadata.table_uuid), "schema": schema, "file": 0, "last": None,
            "within": None,
        }  # fmt: skip
        if first is None:
            return {**offset, "snapshot": None, "version": 1, "expected": 1}
        version = _version(first)
        return {
            **offset, "snapshot": first.snapshot_id, "version": version, "expected": version + 1
        }  # fmt: skip

    def find_end(self, start: Offset) -> Offset:
        history = self._refresh(start)
        history.forget(start["version"])
        if self.is_fixed:
            end = None if start["last"] is not None else start["snapshot"]
        else:
            after, _ = self._after(start, history.table.current_snapshot())
            end = after[-1].snapshot_id if after else None
            if end is None and start["last"] is None:
                end = start["snapshot"]
        if end is None:
            return start
        version = _version(self._snapshot(start, end)) + 1
        return {
            **start, "version": version, "file": 0, "last": end, "within": None,
            "expected": version,
        }  # fmt: skip

    def offset_within(self, start: Offset, version: int, file: int) -> Offset:
        within = super().offset_within(start, version, file)
        last, expected = start["last"], start["expected"]
        for snapshot, _ in self._between(start, self._log(start).table.current_snapshot()):
            number = snapshot.snapshot_id
            if _version(snapshot) == version:
                partly = number if file else None
                return {**within, "last": last, "within": partly, "expected": expected}
            last, expected = number, _version(snapshot) + 1
        raise data_gone(f"version {version} of {self.config.table} was expired before being read")

    def versions(self, start: Offset, end: Offset) -> Iterator[tuple[int, Sequence[IcebergFile]]]:
        head = end["within"] or end["last"]
        if head is None or (start["version"], start["file"]) >= (end["version"], end["file"]):
            return
        history = self._log(start)
        is_first = start["last"] is None and start["snapshot"] is not None
        for snapshot, has_gap in self._between(start, self._snapshot(start, head)):
            files = history.all_files(snapshot) if is_first else history.changed_files(snapshot)
            is_first = False
            yield _version(snapshot), [history.gap(snapshot), *files] if has_gap else files

    def _after(self, start: Offset, head: Any) -> tuple[list[Any], bool]:
        """Returns the snapshots after the one that was read last, or partly if it is the first."""
        last = start["snapshot"] if start["last"] is None else start["last"]
        return self._log(start).after(last, start["expected"], head)

    def _between(self, start: Offset, head: Any) -> list[tuple[Any, bool]]:
        """Returns the snapshots from an offset up to `head`, each with whether it is after a gap.

        A snapshot that was read partly is the first one.
        """
        after, has_gap = self._after(start, head)
        found = [(snapshot, has_gap and not index) for index, snapshot in enumerate(after)]
        if start["last"] is None and start["snapshot"] is not None:
            found.insert(0, (self._snapshot(start, start["snapshot"]), False))
        return found

    def _snapshot(self, start: Offset, number: int) -> Any:
        """Returns a snapshot, also one that is newer than the known state of the table."""
        for history in (self._log, self._refresh):
            snapshot = history(start).table.snapshot_by_id(number)
            if snapshot is not None:
                return snapshot
        raise data_gone(f"snapshot {number} of {self.config.table} was expired before being read")

    def read(self, partition: tuple[IcebergFile, ...], read: Read) -> Iterator[pa.RecordBatch]:
        assert self.columns is not None
        operation = self.operation_column if self.config.changes else None
        options = {"nanoseconds": self.config.nanoseconds}
        table = self._access.require(HINT)
        reader = Reader(self.columns, operation, self.skips_gaps, table, options)
        for file in partition:
            yield from reader.rows(file, read)

    def close(self) -> None:
        self._access.close()

    def _open(self) -> Any:
        table = self._access.require(HINT)
        if table.metadata.format_version < 2:
            raise old_format(self.config.table)
        return table

    def _log(self, start: Offset) -> History:
        return self._history if self._history is not None else self._refresh(start)

    def _refresh(self, start: Offset) -> History:
        """Returns the history of the latest state of the table."""
        table, name = self._access.open(), self.config.table
        if table is None:
            raise data_gone(f"the table {name} was deleted")
        if str(table.metadata.table_uuid) != start["table"]:
            raise data_gone(f"the table {name} was deleted and created again")
        if self._history is None:
            self._history = History(
                table, name, self.config.changes, self.skips_gaps, start["schema"]
            )
        self._history.table = table
        return self._history

    def _first(self, table: Any) -> Any:
        """Returns the snapshot at which a pipeline without state starts; None for none."""
        wanted, time = self.config.snapshot, self.config.time
        history = History(table, self.config.table, False, False, 0)
        if wanted is None and time is None:
            return table.current_snapshot()
        known = list(history.ancestors(table.current_snapshot()))
        if wanted == "earliest":
            return known[-1] if known else None
        if wanted is not None:
            found = [each for each in known if each.snapshot_id == wanted]
            problem = f"the table has no snapshot {wanted}"
        else:
            assert time is not None
            limit = time.timestamp() * 1000
            found = [each for each in known if each.timestamp_ms <= limit]
            problem = f"the table has no snapshot at {time.isoformat()} or before"
        if not found:
            option = "snapshot" if wanted is not None else "timestamp"
            listed = ", ".join(str(each.snapshot_id) for each in known[:5]) or "none"
            raise OptionError.of(
                option, message=problem, code="invalid-option",
                hint=f"The latest snapshots are: {listed}.",
            )  # fmt: skip
        return found[0]

    def _first_schema(self, table: Any, first: Any) -> Any:
        """Returns the schema of the first snapshot if the options name it, or the current one."""
        if first is None or first.schema_id is None or not self.config.is_pinned:
            return table.schema()
        return table.schemas().get(first.schema_id) or table.schema()


def _version(snapshot: Any) -> int:
    return int(snapshot.sequence_number or 0)
