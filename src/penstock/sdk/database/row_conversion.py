"""Rows of a database in the columns of a source. Rows that do not fit become bad records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

import pyarrow as pa

from penstock.core.errors import RecordError
from penstock.sdk.bisect_failures import bisect_failures
from penstock.sdk.columns.conform import decode_error
from penstock.sdk.columns.json_mark import is_json
from penstock.sdk.columns.row_json import key_text, row_text
from penstock.sdk.columns.rows import column
from penstock.sdk.columns.type_names import is_list
from penstock.sdk.database.texts import nested_column
from penstock.sdk.record import Read

Convert = Callable[[pa.RecordBatch, pa.Schema], pa.RecordBatch]
ToValue = Callable[[Any, pa.Field], Any]
"""Returns the JSON in a value of a client library, for a field of a nested type or JSON text."""


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
                values = {
                    name: to_json(column[index])
                    for name, column in zip(batch.schema.names, batch.columns, strict=True)
                }
                return _payload(_with_texts(values, self.columns))

            yield from self.converted(batch.num_rows, attempt, payload)

    def values(self, values: Sequence[list[Any]], to_value: ToValue) -> Iterator[pa.RecordBatch]:
        """Yields rows as batches. `values` are the Python values of each column."""
        count = len(values[0])

        def attempt(start: int, stop: int) -> pa.RecordBatch:
            parts = values if stop - start == count else [each[start:stop] for each in values]
            arrays = [
                _array(part, field, to_value)
                for part, field in zip(parts, self.columns, strict=True)
            ]
            return pa.record_batch(arrays, schema=self.columns)

        def payload(index: int) -> bytes:
            row = (each[index] for each in values)
            return _payload(dict(zip(self.columns.names, row, strict=True)))

        yield from self.converted(count, attempt, payload)

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


def columns_of(rows: Iterable[tuple[Any, ...]], count: int) -> list[list[Any]]:
    """Returns the values of each column of rows with `count` columns.

    `zip(*rows)` has an iterator for each row, and takes ten times as long.
    """
    values = list(chain.from_iterable(rows))
    return [values[index::count] for index in range(count)]


def _with_texts(row: Mapping[str, Any], columns: pa.Schema) -> dict[str, Any]:
    """Returns a row with texts in place of bytes in the columns that are texts."""
    types = dict(zip(columns.names, columns.types, strict=True))
    return {name: _as_text(value, types.get(name)) for name, value in row.items()}


def _as_text(value: Any, type_: pa.DataType | None) -> Any:
    if type_ is None or value is None:
        return value
    if isinstance(value, bytes) and pa.types.is_string(type_):
        return value.decode(errors="surrogateescape")
    if is_list(type_) and isinstance(value, list):
        return [_as_text(item, type_.value_type) for item in value]
    if pa.types.is_struct(type_) and isinstance(value, dict):
        return {part.name: _as_text(value.get(part.name), part.type) for part in type_}
    if pa.types.is_map(type_) and isinstance(value, list):
        return {
            key_text(_as_text(key, type_.key_type)): _as_text(item, type_.item_type)
            for key, item in value
        }
    return value


def _payload(row: Mapping[str, Any]) -> bytes:
    return row_text(row).encode(errors="backslashreplace")


def _array(values: Sequence[Any], field: pa.Field, to_value: ToValue) -> pa.Array:
    if is_json(field):
        return pa.array(map(to_value, values, repeat(field)), pa.string())
    if pa.types.is_nested(field.type):
        return nested_column([to_value(value, field) for value in values], field)
    return column(values, field)
