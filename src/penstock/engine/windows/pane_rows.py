"""Aggregation of the rows of a task by pane, before they are divided among windows.

A pane is an interval of event time whose rows belong to the same windows. The results are partial:
the stateful operator adds them to those of other tasks and batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.error_codec import encode_errors

Kind = Literal["count", "sum", "min", "max"]
_CHUNK = 65_536
"""The number of rows that are aggregated at once."""
_LIMIT = 2**63


@dataclass(frozen=True)
class PaneRows:
    """A function for `mapInArrow`: aggregates rows that have the same `keys`.

    The other columns are aggregated by the functions `kinds`, in the order of `rows`, the schema of
    the output. Sums are of BIGINT or DOUBLE. Values that Arrow aggregates unlike Spark, as NaN or
    sums that may overflow, remain rows of their own.
    """

    rows: pa.Schema
    keys: Sequence[str]
    kinds: Sequence[Kind]

    @encode_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held: list[pa.Table] = []
        for chunk in _chunks(batches):
            counted = self._count(chunk)
            held.append(self._aggregate(counted))
            if sum(part.num_rows for part in held) > _CHUNK:
                merged = self._aggregate(pa.concat_tables(held))
                held = [merged]
                if merged.num_rows > _CHUNK // 2:
                    yield from merged.to_batches()
                    held = []
        if held:
            yield from self._aggregate(pa.concat_tables(held)).to_batches()

    def _count(self, rows: pa.Table) -> pa.Table:
        """Returns rows as partial results: each counts as 1, or as 0 where it has no value."""
        columns = [rows.column(name) for name in self.keys]
        for column, kind in zip(rows.columns[len(self.keys) :], self.kinds, strict=True):
            columns.append(column.is_valid() if kind == "count" else column)
        return pa.table(columns, names=self.rows.names).cast(self.rows)

    def _aggregate(self, parts: pa.Table) -> pa.Table:
        """Returns the partial results of equal keys as one row, if Arrow can aggregate them."""
        values = list(zip(self.rows.names[len(self.keys) :], self.kinds, strict=True))
        if not all(_is_safe(parts.column(name), kind) for name, kind in values):
            return parts
        functions = [(name, "sum" if kind == "count" else kind) for name, kind in values]
        grouped = parts.group_by(list(self.keys), use_threads=False).aggregate(functions)
        names = [*self.keys, *(f"{name}_{function}" for name, function in functions)]
        return grouped.select(names).rename_columns(self.rows.names).cast(self.rows)


def _chunks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(each.num_rows for each in held) >= _CHUNK:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def _is_safe(column: pa.ChunkedArray, kind: Kind) -> bool:
    """Returns whether the aggregate of any part of a column in Arrow is that of Spark."""
    if pa.types.is_floating(column.type):
        return kind == "sum" or not pc.any(pc.is_nan(column)).as_py()
    if kind != "sum":
        return True
    extremes = pc.min_max(column)
    largest = max(abs(extremes[side].as_py() or 0) for side in ("min", "max"))
    return bool(largest * len(column) < _LIMIT)
