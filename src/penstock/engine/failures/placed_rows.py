"""Rows with places, in tasks: rows of a batch that are read again, and their comparison."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.error_codec import encode_errors
from penstock.engine.sources.source import SourceTask
from penstock.engine.tasks import task as spark_task
from penstock.sdk import Capability
from penstock.sdk.columns.json_mark import is_json
from penstock.sdk.columns.row_json import row_payload, row_text
from penstock.sdk.record import PAYLOAD

PLACE = "_penstock_place"
"""The column with the place of the record of a row, which is last."""
NUMBER = "number"
"""The field of `PLACE` with the number of the row in the batch."""
_FIELDS = [PAYLOAD.field("origin"), PAYLOAD.field("position"), pa.field(NUMBER, pa.int64())]
MATCH = pa.schema([pa.field("content", pa.binary()), *_FIELDS])
"""The place of a row, and the digest of its content."""
_ROWS_OF_PARTITION = 1 << 40
_COMPARED_BYTES = 1 << 20
"""The maximum size of the values of a column that rows are compared with before their content."""


def knows_places(task: SourceTask) -> bool:
    """Returns whether the source of a task yields its rows with places."""
    return task.source.locates_rows or Capability.BYTES in task.source.capabilities


@dataclass(frozen=True)
class PlacedRows:
    """A function for `mapInArrow`: reads partitions of a source, whose numbers are its input.

    Returns the rows that `task` has returned before, and `PLACE`. Bad records are left out.
    """

    task: SourceTask
    partitions: Sequence[Any]

    def schema(self) -> pa.Schema:
        """Returns the columns."""
        return self.task.rows.append(pa.field(PLACE, pa.struct(_FIELDS)))

    @encode_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        numbers = (number for batch in batches for number in batch.column(0).to_pylist())
        for number in numbers:
            yield from self._read(number)

    def _read(self, partition: int) -> Iterator[pa.RecordBatch]:
        task, number = self._task(), partition * _ROWS_OF_PARTITION
        dead_letters = task.spool.begin(None, partition)
        isolated = spark_task.is_retry()
        for rows in task.read(self.partitions[partition], dead_letters, isolated):
            numbers = pa.array(np.arange(number, number + rows.num_rows), pa.int64())
            number += rows.num_rows
            *columns, origins, positions = rows.columns
            place = pa.StructArray.from_arrays([origins, positions, numbers], fields=_FIELDS)
            yield pa.RecordBatch.from_arrays([*columns, place], schema=self.schema())

    def _task(self) -> SourceTask:
        """Returns a task of the same rows with the columns of their places."""
        places = [PAYLOAD.field(name).with_nullable(False) for name in ("origin", "position")]
        hidden = {f"{PLACE}_{field.name}": field.name for field in places}
        fields = [field.with_name(name) for name, field in zip(hidden, places, strict=True)]
        return replace(
            self.task,
            rows=pa.schema([*self.task.rows, *fields]),
            metadata={**self.task.metadata, **hidden},
            spool=replace(self.task.spool, on_error="drop", directory=None),
            late=None,
        )


def digest(content: bytes) -> bytes:
    """Returns the digest of the content of a row, which is its JSON."""
    return hashlib.sha1(content).digest()


@dataclass(frozen=True)
class Contents:
    """Contents of rows of some columns: the number of rows by digest.

    `values` has all values of columns whose values are compared first.
    """

    counts: Mapping[bytes, int]
    values: Mapping[str, pa.Array]

    @staticmethod
    def of(nodes: Sequence[Sequence[Mapping[str, Any]]], columns: pa.Schema) -> Contents:
        """Returns the contents of the failing rows of each node, which are decoded JSON.

        Nodes with the same input may fail on the same rows.
        """
        counts: Counter[bytes] = Counter()
        for rows in nodes:
            counts |= Counter(digest(content_of(row, columns)) for row in rows)
        values = {}
        for field in columns:
            array = _values([row[field.name] for rows in nodes for row in rows], field)
            if array is not None and array.nbytes <= _COMPARED_BYTES:
                values[field.name] = array
        return Contents(counts, values)


def _values(values: Sequence[Any], field: pa.Field) -> pa.Array | None:
    """Returns decoded values of JSON in the type of a column, or None for other types."""
    if is_json(field) or not (pa.types.is_integer(field.type) or pa.types.is_string(field.type)):
        return None
    try:
        return pa.array(list(dict.fromkeys(values)), field.type)
    except (pa.ArrowException, UnicodeEncodeError, OverflowError):
        return None


def parse(payload: bytes) -> dict[str, Any]:
    """Returns the decoded JSON of a row."""
    row: dict[str, Any] = json.loads(payload)
    return row


def content_of(row: Mapping[str, Any], columns: pa.Schema) -> bytes:
    """Returns the content of a row in some of its columns, as `row_payload` does."""
    return row_text({name: row[name] for name in columns.names}).encode(errors="backslashreplace")


@dataclass(frozen=True)
class Matching:
    """A function for `mapInArrow`: returns the places of rows with some contents (`MATCH`).

    The input has `columns` and then `PLACE`. Each task returns the first rows of a content, up to
    their number in `contents`.
    """

    columns: pa.Schema
    contents: Contents

    @encode_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        remaining = dict(self.contents.counts)
        for batch in batches:
            *columns, places = batch.columns
            typed = [c.cast(f.type) for c, f in zip(columns, self.columns, strict=True)]
            rows = pa.RecordBatch.from_arrays(typed, schema=self.columns)
            found = []
            for index in self._candidates(rows, places):
                content = digest(row_payload(rows, index))
                if remaining.get(content):
                    remaining[content] -= 1
                    found.append({"content": content, **places[index].as_py()})
            if found:
                yield pa.RecordBatch.from_pylist(found, schema=MATCH)

    def _candidates(self, rows: pa.RecordBatch, places: pa.StructArray) -> list[int]:
        """Returns the indexes of rows with a place whose compared values occur in `contents`.

        A row of an outer join may have no place.
        """
        mask = np.asarray(places.is_valid())
        for name, values in self.contents.values.items():
            mask = mask & np.asarray(pc.is_in(rows.column(name), value_set=values))
        indexes: list[int] = np.flatnonzero(mask).tolist()
        return indexes
