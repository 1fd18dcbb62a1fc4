"""Envelopes of change events: their columns, and conversion from and to rows with operations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import DecodeError, EncodeError, RecordError
from penstock.sdk import Failure, Operation
from penstock.sdk.columns.json_mark import json_field
from penstock.sdk.columns.times import milliseconds as milliseconds_of
from penstock.sdk.operations import known_operations

_TIME = pa.timestamp("us", tz="UTC")
_MAX_MILLISECONDS = (2**63 - 1) // 1000
_CODES = {"c": Operation.INSERT, "r": Operation.INSERT, "u": Operation.UPDATE,
          "d": Operation.DELETE}  # fmt: skip
"""The operation of each `op` of an event: create, read (of a snapshot), update, delete."""


@dataclass(frozen=True)
class Columns:
    """The columns of rows: those of the table, and those that are not part of the row.

    `time` holds `ts_ms` of the event, `source` the JSON text of its `source`.
    """

    table: pa.Schema
    operation: str
    time: str | None = None
    source: str | None = None

    @classmethod
    def of(cls, schema: pa.Schema, operation: str, time: str | None, source: str | None) -> Columns:
        """Returns the columns of rows of `schema`."""
        others = (operation, time, source)
        fields = [field.with_nullable(True) for field in schema if field.name not in others]
        table = pa.schema(fields, schema.metadata)
        return cls(table, operation, time, source)

    @property
    def row(self) -> pa.DataType:
        """The type of the row before and after."""
        return pa.struct(list(self.table))

    def envelope(self) -> pa.Schema:
        """Returns the columns of an event that is read."""
        fields = [("before", self.row), ("after", self.row), ("op", pa.string())]
        fields += [("ts_ms", pa.int64())] if self.time else []
        fields += [("source", pa.string())] if self.source else []
        return pa.schema(fields, self.table.metadata)

    def with_roles(self) -> pa.Schema:
        """Returns the columns of the table and those that are not part of the row."""
        columns = self.table.append(pa.field(self.operation, pa.string()))
        columns = columns.append(pa.field(self.time, _TIME)) if self.time else columns
        return columns.append(pa.field(self.source, pa.string())) if self.source else columns


def to_rows(
    events: pa.RecordBatch,
    columns: Columns,
    schema: pa.Schema,
    rejected: Mapping[int, RecordError],
) -> tuple[pa.RecordBatch, np.ndarray, list[Failure]]:
    """Returns the rows of events, the index of the event of each row, and the bad events.

    An update with the row before has two rows. `rejected` are events that are bad already.
    """
    before, after = events.column("before"), events.column("after")
    validity = zip(before.is_valid().to_pylist(), after.is_valid().to_pylist(), strict=True)
    times = events.column("ts_ms").to_pylist() if columns.time else [None] * events.num_rows
    picked: list[int] = []
    operations: list[str] = []
    failures = []
    for number, (op, valid) in enumerate(
        zip(events.column("op").to_pylist(), validity, strict=True)
    ):
        error = _event_error(op, *valid) or _time_error(times[number]) or rejected.get(number)
        if error is not None:
            failures.append(Failure(number, error))
            continue
        operation = _CODES[op]
        if operation is Operation.DELETE or (operation is Operation.UPDATE and valid[0]):
            picked.append(number)
            is_update = operation is Operation.UPDATE
            operations.append(Operation.UPDATE_BEFORE if is_update else operation)
        if operation is not Operation.DELETE:
            picked.append(events.num_rows + number)
            operations.append(operation)
    values = pa.concat_arrays([before, after]).take(pa.array(picked, pa.int64()))
    index = np.array(picked, np.int64) % max(events.num_rows, 1)
    arrays = {name: pc.struct_field(values, [i]) for i, name in enumerate(columns.table.names)}
    arrays[columns.operation] = pa.array(operations, pa.string())
    if columns.time is not None:
        milliseconds = events.column("ts_ms").take(pa.array(index))
        arrays[columns.time] = pc.multiply(milliseconds, 1000).cast(_TIME)
    if columns.source is not None:
        arrays[columns.source] = events.column("source").take(pa.array(index))
    rows = [arrays[field.name].cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(rows, schema=schema), index, failures


def _event_error(op: str | None, has_before: bool, has_after: bool) -> DecodeError | None:
    """Returns the error of an event that is no change of a row, or None."""
    if op is None:
        return DecodeError("not a change event: op is missing", code="no-change")
    if op not in _CODES:
        return DecodeError(
            f'expected op c, r, u or d, found "{op}"', code="unknown-operation",
            hint="Events of truncate (t) and messages (m) are not changes of rows.",
        )  # fmt: skip
    if op == "d" and not has_before:
        return DecodeError(
            "the event of a delete has no row before", code="no-before",
            hint="Set REPLICA IDENTITY of the table, or binlog_row_image=FULL.",
        )  # fmt: skip
    if op != "d" and not has_after:
        return DecodeError(f'an event with op "{op}" has no row after', code="no-after")
    return None


def _time_error(time: int | None) -> DecodeError | None:
    """Returns the error of a time that microseconds in 64 bits cannot hold, or None."""
    if time is None or abs(time) <= _MAX_MILLISECONDS:
        return None
    return DecodeError(f"ts_ms is out of range: {time}", code="invalid-timestamp")


@dataclass(frozen=True)
class Events:
    """Events of rows: `rows` is the index of the last row of each event."""

    batch: pa.RecordBatch
    rows: np.ndarray
    failures: list[Failure]


def to_events(
    rows: pa.RecordBatch, columns: Columns, key: Sequence[str], *, complete: bool = False
) -> Events:
    """Returns the events of changes. Without an operation column all rows are inserts.

    If changes are `complete`, an update without its row before is an insert: a condition has
    dropped the row before.

    The two rows of an update are one event, unless they differ in the `key`: then the row before is
    deleted and the row after is created, as Debezium does.
    """
    operations, failures = _operations(rows, columns.operation)
    table = rows.select(columns.table.names)
    events = list(_events(operations, _keys(table, key), complete))
    index = pa.array([event.row for event in events], pa.int64())
    arrays = {
        pa.field("before", columns.row): _images(table, [event.before for event in events]),
        pa.field("after", columns.row): _images(table, [event.after for event in events]),
        pa.field("op", pa.string()): pa.array([event.op for event in events], pa.string()),
    }
    if columns.source is not None and columns.source in rows.schema.names:
        source = json_field(pa.field("source", pa.string()))
        arrays[source] = rows.column(columns.source).cast(pa.string()).take(index)
    if columns.time is not None and columns.time in rows.schema.names:
        times = pa.array(milliseconds_of(rows.column(columns.time)), pa.int64())
        arrays[pa.field("ts_ms", pa.int64())] = times.take(index)
    batch = pa.RecordBatch.from_arrays([*arrays.values()], schema=pa.schema([*arrays]))
    return Events(batch, index.to_numpy(), failures)


class _Event(NamedTuple):
    """An event: the indexes of its rows before and after, and of the row that it is written for."""

    row: int
    before: int | None
    after: int | None
    op: str


def _events(
    operations: Sequence[str | None], keys: Sequence[tuple[Any, ...]] | None, complete: bool
) -> Iterator[_Event]:
    """Yields the events of rows with operations; None is no operation."""
    # A condition turns an update into a delete, unless changes are complete.
    seconds = (Operation.UPDATE,) if complete else (Operation.UPDATE, Operation.DELETE)

    def is_pair(index: int) -> bool:
        """Returns whether a row and the next one are the two rows of one event."""
        return (
            0 <= index < len(operations) - 1
            and operations[index] == Operation.UPDATE_BEFORE
            and operations[index + 1] in seconds
            and (keys is None or keys[index] == keys[index + 1])
        )

    for index, operation in enumerate(operations):
        if operation is None or is_pair(index):
            continue
        before = index - 1 if is_pair(index - 1) else None
        if operation == Operation.UPDATE_BEFORE:
            yield _Event(index, index, None, "d")
        elif operation == Operation.DELETE:
            yield _Event(index, index if before is None else before, None, "d")
        elif operation == Operation.UPDATE:
            moved = index > 0 and operations[index - 1] == Operation.UPDATE_BEFORE
            is_new = before is None and (moved or complete)
            yield _Event(index, before, index, "c" if is_new else "u")
        else:
            yield _Event(index, None, index, "c")


def _operations(rows: pa.RecordBatch, column: str) -> tuple[list[str | None], list[Failure]]:
    """Returns the operation of each row, None for a bad one, and the failures."""
    if column not in rows.schema.names:
        return [Operation.INSERT] * rows.num_rows, []
    values = rows.column(column).cast(pa.string())
    known = known_operations(values).to_pylist()
    operations = [
        value if ok else None for value, ok in zip(values.to_pylist(), known, strict=True)
    ]
    error = EncodeError(
        f'expected an operation (i, ub, u or d) in column "{column}"', code="unknown-operation"
    )
    return operations, [Failure(index, error) for index, ok in enumerate(known) if not ok]


def _keys(table: pa.RecordBatch, key: Sequence[str]) -> list[tuple[Any, ...]] | None:
    """Returns the primary key of each row; None without a key among the columns."""
    if not key or any(name not in table.schema.names for name in key):
        return None
    return list(zip(*(table.column(name).to_pylist() for name in key), strict=True))


def _images(table: pa.RecordBatch, indexes: list[int | None]) -> pa.StructArray:
    """Returns rows as structs; null without an index."""
    index = pa.array(indexes, pa.int64())
    columns = [column.take(index) for column in table.columns]
    fields = [field.with_nullable(True) for field in table.schema]
    return pa.StructArray.from_arrays(columns, fields=fields, mask=index.is_null())
