"""Results of engines whose code returns one JSON value after another, as columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from penstock.transforms.sandbox.child import Batch, CodeError


def run_rows(
    batch: Batch, call: Callable[[str], Iterable[Any]], default: Callable[[Any], Any] | None = None
) -> bytes:
    """Returns the results of `call` for each row of a batch, which are JSON texts in a list.

    `default` converts values that JSON does not have.
    """
    results = Collector(batch.options["names"], batch.options["closed"])
    for index, text in enumerate(json.loads(batch.payload)):
        batch.clock.start(index)
        try:
            results.add(call(text))
        except CodeError as error:
            results.fail(index, error)
    return results.encode(default)


class Collector:
    """Columns of result rows, the number of result rows of each row, and failures.

    A result is an object, a list of objects, or null for no row. With `closed` a property without
    a column is an error.
    """

    def __init__(self, names: list[str], closed: bool) -> None:
        self._names, self._closed = names, closed
        self._index = {name.lower(): index for index, name in enumerate(names)}
        self._index |= {name: index for index, name in enumerate(names)}
        self._columns: list[list[Any]] = [[] for _ in names]
        self._counts: list[int] = []
        self._failures: list[list[Any]] = []

    def add(self, results: Iterable[Any]) -> None:
        """Adds the results of the next row. Raises CodeError."""
        rows = [self._cells(row) for result in results for row in _rows(result)]
        for column, cells in zip(self._columns, zip(*rows, strict=True), strict=False):
            column.extend(cells)
        self._counts.append(len(rows))

    def fail(self, index: int, error: CodeError) -> None:
        """Adds the failure of the next row."""
        self._counts.append(0)
        self._failures.append([index, error.message, error.line, error.column])

    def encode(self, default: Callable[[Any], Any] | None = None) -> bytes:
        """Returns the results as `results.Results` reads them."""
        content = {
            "counts": self._counts, "columns": self._columns, "failures": self._failures,
        }  # fmt: skip
        return json.dumps(content, ensure_ascii=True, default=default).encode()

    def _cells(self, row: dict[str, Any]) -> list[Any]:
        cells: list[Any] = [None] * len(self._names)
        known = 0
        for key, value in row.items():
            index = self._index.get(key)
            if index is None:
                index = self._index.get(key.lower())
            if index is not None:
                cells[index] = value
                known += 1
            elif self._closed:
                raise CodeError(f'the output has no column "{key}"; declare the columns in schema')
        if row and not known:
            raise CodeError(f"a row has none of the columns, but {', '.join(row)}")
        return cells


def _rows(result: Any) -> list[dict[str, Any]]:
    if result is None:
        return []
    rows = result if isinstance(result, list) else [result]
    for row in rows:
        if row is not None and not isinstance(row, dict):
            raise CodeError(f"expected an object, a list of objects or null, found {_kind(row)}")
    return [row for row in rows if row is not None]


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, list):
        return "a list"
    return "a number" if isinstance(value, int | float) else "text"
