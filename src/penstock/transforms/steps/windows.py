"""Merging of the batches that arrive together: by rows, in sliding windows, and by a join."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
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

    def merge(self, units: Sequence[Unit]) -> tuple[list[Unit], Sequence[Unit]]:
        """Returns merged units, and the units that the next windows begin with.

        Units that could not be decoded come first, as they are.
        """
        failed = [unit for unit in units if unit.error is not None]
        groups, rest = self._groups([unit for unit in units if unit.error is None])
        if self._query is None:
            return [*failed, *map(_merged, groups)], rest
        return [*failed, *(unit for group in groups for unit in self._join(group))], rest

    def _groups(self, units: Sequence[Unit]) -> tuple[list[Sequence[Unit]], Sequence[Unit]]:
        size, slide = self.config.size, self.config.slide
        if size is None or slide is None:
            return list(self._by_rows(units)), ()
        starts = range(0, len(units) - size + 1, slide)
        groups = [units[start : start + size] for start in starts]
        rest = units[len(starts) * slide :]
        if self.config.rest == "keep":
            return groups, rest
        written = starts[-1] + size if starts else 0
        return [*groups, rest] if written < len(units) else groups, ()

    def _by_rows(self, units: Sequence[Unit]) -> Iterator[Sequence[Unit]]:
        """Yields the units of each window without an overlap."""
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

    def _join(self, group: Sequence[Unit]) -> Iterator[Unit]:
        """Yields the rows of a join, and the units that cannot be decoded."""
        assert self._query is not None
        indexes, first = _indexes(group), group[0]
        original = merge([unit.original for unit in group])
        try:
            tables = {name: self._decode(name, group) for name in self._inputs}
        except Exception as error:
            failures = list(self._undecodable(group))
            failed = {id(unit) for unit, _ in failures}
            valid = [unit for unit in group if id(unit) not in failed]
            if not failures or not valid:
                yield Unit(original, None, first.input, indexes, record_error(error))
                return
            yield from (replace(unit, batch=None, error=failure) for unit, failure in failures)
            yield from self._join(valid)
            return
        if not all(table is not None for table in tables.values()):
            # An input without messages in a window leaves the join without rows.
            yield Unit(original, first.original.slice(0, 0), first.input, indexes)
            return
        try:
            yield Unit(original, self._query.run_tables(tables), first.input, indexes)
        except Exception as error:
            yield Unit(original, None, first.input, indexes, record_error(error))

    def _decode(self, name: str, group: Sequence[Unit]) -> pa.RecordBatch | None:
        """Returns the messages of an input as a table; None if there are none."""
        assert self._codec is not None
        assert self.config.join is not None
        column = self.config.join.column
        units = [unit for unit in group if unit.input == name]
        payloads = [v for unit in units for v in unit.original.column(column).to_pylist()]
        return self._codec.decode(payloads) if payloads else None

    def _undecodable(self, group: Sequence[Unit]) -> Iterator[tuple[Unit, RecordError]]:
        """Yields the units that cannot be decoded by themselves, with their errors."""
        for unit in group:
            try:
                self._decode(unit.input, [unit])
            except Exception as error:
                yield unit, record_error(error)


def _merged(group: Sequence[Unit]) -> Unit:
    first = group[0]
    original = merge([unit.original for unit in group])
    try:
        batch: pa.RecordBatch = merge([unit.batch for unit in group if unit.batch is not None])
    except pa.ArrowException as error:
        failure: RecordError = as_record_error(error)
        return Unit(original, None, first.input, _indexes(group), failure)
    return Unit(original, batch, first.input, _indexes(group))


def _indexes(group: Sequence[Unit]) -> tuple[int, ...]:
    """Returns the rows of the input of all units, each one once."""
    return tuple(dict.fromkeys(index for unit in group for index in unit.indexes))
