"""Rows of a database in the columns of a source. Rows that do not fit become bad records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import itemgetter
from typing import Any

import pyarrow as pa

from penstock.core.errors import RecordError
from penstock.sdk.bisect_failures import bisect_failures
from penstock.sdk.columns.conform import decode_error
from penstock.sdk.columns.json_mark import is_json
from penstock.sdk.columns.row_json import row_text
from penstock.sdk.columns.rows import column
from penstock.sdk.record import Read

Rows = Sequence[tuple[Any, ...]]
Convert = Callable[[pa.RecordBatch, pa.Schema], pa.RecordBatch]
ToValue = Callable[[Any, pa.Field], Any]
"""Converts a value of a client library for a field of a nested type or of JSON text."""


def _python_value(value: pa.Scalar) -> Any:
    return value.as_py()


@dataclass
class RowConversion:
    """The conversion of the rows of a table or a query, called `name` in origins.

    The position of a bad record is the number of its row. `columns` are those of the source.
    """

    name: str
    columns: pa.Schema
    read: Read
    _count: int = 0

    def batches(
        self, batches: Iterable[pa.RecordBatch], convert: Convert,
        to_json: Callable[[pa.Scalar], Any] = _python_value,
    ) -> Iterator[pa.RecordBatch]:  # fmt: skip
        """Yields batches that `convert` has converted to the columns.

        `convert` raises ArrowInvalid or RecordError for a value that does not fit. `to_json`
        returns a value of a bad record for JSON.
        """
        for batch in batches:

            def attempt(start: int, stop: int, batch: pa.RecordBatch = batch) -> pa.RecordBatch:
                return convert(batch.slice(start, stop - start), self.columns)

            def payload(index: int, batch: pa.RecordBatch = batch) -> bytes:
                pairs = zip(batch.schema.names, batch.columns, strict=True)
                return _payload({name: to_json(column[index]) for name, column in pairs})

            yield from self.converted(batch.num_rows, attempt, payload)

    def rows(self, rows: Rows, to_value: ToValue) -> Iterator[pa.RecordBatch]:
        """Yields rows of Python values as batches."""

        def attempt(start: int, stop: int) -> pa.RecordBatch:
            columns = columns_of(rows[start:stop], len(self.columns))
            arrays = [
                _array(values, field, to_value)
                for values, field in zip(columns, self.columns, strict=True)
            ]
            return pa.record_batch(arrays, schema=self.columns)

        def payload(index: int) -> bytes:
            return _payload(dict(zip(self.columns.names, rows[index], strict=True)))

        yield from self.converted(len(rows), attempt, payload)

    def converted(
        self, count: int, attempt: Callable[[int, int], pa.RecordBatch],
        payload: Callable[[int], bytes],
    ) -> Iterator[pa.RecordBatch]:  # fmt: skip
        """Yields the results of `attempt(start, stop)` on parts of `count` rows.

        It raises ArrowInvalid or RecordError for a value that does not fit. `payload` returns the
        content of a bad record.
        """
        for start, _, result in bisect_failures(count, attempt, decode_error):
            if isinstance(result, RecordError):
                self.read.reject(payload(start), self.name, self._count + start + 1, result)
            else:
                yield result
        self._count += count


def columns_of(rows: Rows, count: int) -> list[list[Any]]:
    """Returns the values of each column of rows with `count` columns.

    `zip(*rows)` has an iterator for each row, and takes ten times as long.
    """
    return [list(map(itemgetter(index), rows)) for index in range(count)]


def _payload(row: Mapping[str, Any]) -> bytes:
    return row_text(row).encode(errors="backslashreplace")


def _array(values: Sequence[Any], field: pa.Field, to_value: ToValue) -> pa.Array:
    if is_json(field):
        return pa.array(map(to_value, values, repeat(field)), pa.string())
    if pa.types.is_nested(field.type):
        values = [to_value(value, field) for value in values]
    return column(values, field)
