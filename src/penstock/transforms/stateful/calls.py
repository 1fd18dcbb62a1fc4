"""The functions of the user over rows and timers of a key, and their output as Arrow batches."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from penstock.core.time_limit import call_within
from penstock.sdk.columns.conform import conform
from penstock.sdk.columns.conversion import Conversion
from penstock.sdk.columns.json_text import parsed_value
from penstock.sdk.columns.names import fold
from penstock.sdk.columns.rows import batch_of
from penstock.transforms.python_results import batches_of, rows_of
from penstock.transforms.stateful.key_state import KeyState

Call = Callable[[KeyState], list[pa.RecordBatch]]


class Calls:
    """The calls of a function, or of an instance of a class with `process` and `on_timer`.

    With `by_row` the function takes a row as a dict, otherwise the rows of one key in a batch.
    `columns` are those of the output, and `timeout` limits a call, in seconds.
    """

    def __init__(
        self, target: Any, columns: pa.Schema, *, by_row: bool = True, timeout: float = 3600
    ) -> None:
        self._function = target if inspect.isfunction(target) else target.process
        self._on_timer = getattr(target, "on_timer", None)
        self._columns, self._by_row, self._timeout = columns, by_row, timeout
        self._names = {fold(name) for name in columns.names}

    @property
    def has_on_timer(self) -> bool:
        """Whether timers can be set."""
        return self._on_timer is not None

    def parts(self, keys: Sequence[Hashable]) -> list[list[int]]:
        """Returns the indexes of the rows of each call, for the keys of a batch."""
        if self._by_row:
            return [[index] for index in range(len(keys))]
        parts: dict[Hashable, list[int]] = {}
        for index, key in enumerate(keys):
            parts.setdefault(key, []).append(index)
        return list(parts.values())

    def of_rows(self, rows: pa.RecordBatch, indexes: Sequence[int]) -> Call:
        """Returns the call for rows of one key."""
        if not self._by_row:
            return self._call(self._function, rows.take(pa.array(indexes, pa.int64())))
        row = rows.slice(indexes[0], 1).to_pylist()[0]
        values = {field.name: parsed_value(row[field.name], field) for field in rows.schema}
        return self._call(self._function, values)

    def of_timer(self, name: str) -> Call:
        """Returns the call for a timer."""
        return self._call(self._on_timer, name)

    def _call(self, function: Any, argument: Any) -> Call:
        def call(state: KeyState) -> list[pa.RecordBatch]:
            result = call_within(self._timeout, partial(_complete, function, argument, state))
            return self._batches(result)

        return call

    def _batches(self, results: list[Any]) -> list[pa.RecordBatch]:
        """Returns results as batches of the columns of the output."""
        batches: list[pa.RecordBatch] = []
        rows: list[Any] = []
        for result in results:
            if isinstance(result, pa.RecordBatch | pa.Table):
                convert = Conversion(nearest=True)
                batches += [conform(each, self._columns, convert) for each in batches_of(result)]
            else:
                rows += rows_of(result)
        for row in rows:
            if row and self._names.isdisjoint(map(fold, row)):
                raise ValueError(f"a row has none of the columns, but {', '.join(map(str, row))}")
        return [*batches, batch_of(rows, self._columns)] if rows else batches


def _complete(function: Any, argument: Any, state: KeyState) -> list[Any]:
    """Calls a function. Returns its result, or those that it yields."""
    result = function(argument, state)
    return list(result) if inspect.isgenerator(result) else [result]
