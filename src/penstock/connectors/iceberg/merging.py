"""Merging of staged rows: the files with their keys are written again, without the old rows."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from functools import cached_property, reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.iceberg.client import open_input
from penstock.connectors.iceberg.reader import ExactReader
from penstock.connectors.iceberg.snapshots import planned
from penstock.connectors.iceberg.target import Target
from penstock.connectors.iceberg.writer import IcebergWriter
from penstock.sdk.lakes.writer import DELETED

MAX_VALUES = 200
"""The number of keys up to which files are found by each of them, not by their bounds."""


class Merge:
    """The files that a batch of upserts and deletes removes and adds."""

    def __init__(self, target: Target, key: Sequence[str]) -> None:
        self._target = target
        self._key = [field.name for field in target.fields(key)]
        names = [field.name for field in target.schema.fields]
        self._reader = ExactReader.of(target.table)
        self._writer = IcebergWriter(target, f"merged-{uuid.uuid4().hex}", names, ())

    def execute(self, staged: Sequence[str]) -> tuple[list[Any], list[Any]]:
        """Returns the data files to remove and those to add, which it deletes after a failure."""
        try:
            return self._execute(staged)
        except BaseException:
            self.abort()
            raise

    def _execute(self, staged: Sequence[str]) -> tuple[list[Any], list[Any]]:
        rows = self._read_staged(staged)
        if rows.num_rows == 0:
            return [], []
        matches = KeyMatches(rows.select(self._key))
        names = [field.name for field in self._target.schema.fields]
        missing = [name for name in names if name not in rows.schema.names]
        kept_values: list[tuple[npt.NDArray[np.int64], pa.Table]] = []
        removed = []
        for task in self._affected(rows):
            old = self._read(task)
            found = matches.find(old.select(self._key))
            hits = np.flatnonzero(found >= 0)
            if not len(hits):
                continue
            removed.append(task.file)
            self._write(old.filter(pa.array(found < 0)))
            if missing:
                kept_values.append((found[hits], old.select(missing).take(pa.array(hits))))
        self._write(self._upserts(rows, missing, kept_values))
        return removed, self._writer.data_files()

    def abort(self) -> None:
        """Deletes the added files."""
        self._writer.abort()

    def _read_staged(self, staged: Sequence[str]) -> pa.Table:
        from pyarrow import parquet

        tables = []
        for name in staged:
            with open_input(self._target.table.io, name) as file:
                tables.append(parquet.read_table(file))
        return pa.concat_tables(tables).combine_chunks()

    def _affected(self, rows: pa.Table) -> list[Any]:
        """Returns the scans of the data files that can have the keys."""
        condition = key_condition(rows, self._key)
        return planned(self._target.table.scan(row_filter=condition), self._target.name)

    def _read(self, task: Any) -> pa.Table:
        """Returns the rows of a data file without those that delete files have removed."""
        return pa.Table.from_batches(self._reader.scan([task]), self._reader.columns)

    def _write(self, rows: pa.Table) -> None:
        for batch in rows.to_batches():
            for failure in self._writer.write(batch):
                raise failure.error

    def _upserts(
        self, rows: pa.Table, missing: Sequence[str],
        kept: Sequence[tuple[npt.NDArray[np.int64], pa.Table]],
    ) -> pa.Table:  # fmt: skip
        """Returns the new rows. A column that they lack keeps its values."""
        places = np.full(rows.num_rows, -1, np.int64)
        if kept:
            found = np.concatenate([indexes for indexes, _ in kept])
            places[found] = np.arange(len(found))
        indexes = pa.array(places, mask=places < 0)
        values = pa.concat_tables([table for _, table in kept]) if (kept) else None
        for name in missing:
            column = pa.nulls(rows.num_rows) if values is None else values[name].take(indexes)
            rows = rows.append_column(name, column)
        return rows.filter(pc.invert(rows[DELETED])).drop_columns([DELETED])


class KeyMatches:
    """The rows of a batch by their keys, which are distinct and not null."""

    def __init__(self, keys: pa.Table) -> None:
        self._columns = [_plain(keys[name]) for name in keys.schema.names]
        self._distinct = [pc.unique(column) for column in self._columns]

    def find(self, keys: pa.Table) -> npt.NDArray[np.int64]:
        """Returns the index in the batch of the row with each key, or -1."""
        count = keys.num_rows
        valid = np.ones(count, bool)
        codes = np.zeros(count, np.int64)
        for name, distinct, (known, own) in zip(
            keys.schema.names, self._distinct, self._codes, strict=True
        ):
            column = _plain(keys[name])
            index = pc.index_in(column.cast(distinct.type), value_set=distinct)
            valid &= np.asarray(index.is_valid())
            codes = codes * len(distinct) + np.asarray(index.fill_null(0), np.int64)
            place = np.minimum(np.searchsorted(known, codes), len(known) - 1)
            valid &= known[place] == codes
            codes = place
            last = own
        rows = np.empty(len(known), np.int64)
        rows[last] = np.arange(len(last))
        return np.where(valid, rows[codes], -1)

    @cached_property
    def _codes(self) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """The distinct codes of the first columns, and the place of each row among them."""
        found = []
        codes = np.zeros(len(self._columns[0]), np.int64)
        for column, distinct in zip(self._columns, self._distinct, strict=True):
            index = np.asarray(pc.index_in(column, value_set=distinct), np.int64)
            known, codes = np.unique(codes * len(distinct) + index, return_inverse=True)
            found.append((known, codes))
        return found


def _plain(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    if isinstance(found, pa.ChunkedArray):
        found = pa.concat_arrays(found.chunks) if found.num_chunks else pa.array([], found.type)
    return found.storage if isinstance(found.type, pa.BaseExtensionType) else found


def key_condition(rows: pa.Table, key: Sequence[str]) -> Any:
    """Returns a condition that all rows with the keys fulfil."""
    from pyiceberg import expressions

    made: Any = expressions
    conditions = [made.AlwaysTrue()]
    for name in key:
        column = _plain(rows[name])
        if pa.types.is_floating(column.type):
            continue
        distinct = pc.unique(column)
        if len(distinct) <= MAX_VALUES:
            conditions.append(made.In(name, _values(distinct, rows.field(name))))
        elif pa.types.is_integer(column.type) or pa.types.is_string(column.type):
            bounds = pc.min_max(distinct)
            conditions.append(made.GreaterThanOrEqual(name, bounds["min"].as_py()))
            conditions.append(made.LessThanOrEqual(name, bounds["max"].as_py()))
    return reduce(made.And, conditions)


def _values(values: pa.Array, field: pa.Field) -> set[Any]:
    if isinstance(field.type, pa.BaseExtensionType):
        values = pa.ExtensionArray.from_storage(field.type, values)
    return {*values.to_pylist()}
