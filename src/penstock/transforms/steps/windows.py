"""Merging of the batches that arrive together: by rows, in sliding windows, and by a join."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from penstock.core.errors import RecordError
from penstock.sdk.bisect_failures import as_record_error
from penstock.transforms.steps.codecs import make_codec
from penstock.transforms.steps.config import Window
from penstock.transforms.steps.sql_query import BatchQuery
from penstock.transforms.steps.units import Unit, merge, record_error


class Windows:
    """Makes batches of the units that arrive together, in their order."""

    def __init__(self, config: Window, inputs: Sequence[str], base: Path) -> None:
        self.config, self._inputs = config, [name for name in inputs if name]
        join = config.join
        self._query = BatchQuery(join.query) if join is not None else None
        self._codec = make_codec(join.decode, base) if join is not None else None

    def check(self) -> None:
        """Checks the query of the join. Raises PlanError."""
        if self._query is not None:
            self._query.check()

    def merge(self, units: Sequence[Unit]) -> Iterator[Unit]:
        """Yields merged units, and those that could not be decoded as they are."""
        valid = [unit for unit in units if unit.error is None]
        yield from (unit for unit in units if unit.error is not None)
        for group in self._groups(valid):
            yield self._join(group) if self._query is not None else _merged(group)

    def _groups(self, units: Sequence[Unit]) -> Iterator[Sequence[Unit]]:
        if self.config.size is not None and self.config.slide is not None:
            yield from self._slides(units, self.config.size, self.config.slide)
            return
        group: list[Unit] = []
        rows = 0
        for unit in units:
            group.append(unit)
            rows += unit.original.num_rows
            if self.config.rows is not None and rows >= self.config.rows:
                yield group
                group, rows = [], 0
        if group:
            yield group

    def _slides(self, units: Sequence[Unit], size: int, slide: int) -> Iterator[Sequence[Unit]]:
        """Yields windows of `size` batches, and at the end the batches that no window has."""
        start = end = 0
        while start + size <= len(units):
            end = start + size
            yield units[start:end]
            start += slide
        if end < len(units):
            yield units[start:]

    def _join(self, group: Sequence[Unit]) -> Unit:
        assert self._query is not None
        assert self._codec is not None
        assert self.config.join is not None
        original = merge([unit.original for unit in group])
        first = group[0]
        try:
            tables = {}
            for name in self._inputs:
                payloads = [
                    value
                    for unit in group
                    if unit.input == name
                    for value in unit.original.column(self.config.join.column).to_pylist()
                ]
                if not payloads:
                    # An input without messages in a window leaves the join without rows.
                    return Unit(original, first.original.slice(0, 0), first.input, first.index)
                tables[name] = self._codec.decode(payloads)
            batch = self._query.run_tables(tables)
        except Exception as error:
            return Unit(original, None, first.input, first.index, record_error(error))
        return Unit(original, batch, first.input, first.index)


def _merged(group: Sequence[Unit]) -> Unit:
    first = group[0]
    original = merge([unit.original for unit in group])
    try:
        batch: pa.RecordBatch = merge([unit.batch for unit in group if unit.batch is not None])
    except pa.ArrowException as error:
        failure: RecordError = as_record_error(error)
        return Unit(original, None, first.input, first.index, failure)
    return Unit(original, batch, first.input, first.index)
