"""Rows of results as Arrow batches.

Numbers and binary values keep their types. Decimals and times are texts, which have all digits,
until they are converted to the columns of a source.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from penstock.connectors.jdbc import types
from penstock.connectors.jdbc.types import JdbcColumn
from penstock.sdk.columns.conform import conform
from penstock.sdk.columns.conversion import TextConversion
from penstock.sdk.database.texts import nested_column
from penstock.sdk.java import java_class

Get = Callable[[Any, int], Any]
"""Returns the value of the current row of a result by the number of the column, or None."""
_PART_BYTES = 16 * 2**20
_SHORT_OFFSET = re.compile(r"([+-])(\d:\d\d)$")
_CONVERSION = TextConversion()


def columns_of(metadata: Any) -> list[JdbcColumn]:
    """Returns the columns of a result."""
    return [
        JdbcColumn(
            str(metadata.getColumnLabel(index)), metadata.getColumnType(index),
            str(metadata.getColumnTypeName(index) or ""), metadata.getPrecision(index),
            metadata.getScale(index), bool(metadata.isSigned(index)),
        )
        for index in range(1, metadata.getColumnCount() + 1)
    ]  # fmt: skip


class ResultReader:
    """A reader of a result. With `times_as_texts` the driver returns the texts of times."""

    def __init__(
        self,
        result: Any,
        columns: Sequence[JdbcColumn],
        fetch_size: int,
        *,
        times_as_texts: bool = False,
    ) -> None:
        self._result, self._columns, self._fetch_size = result, columns, fetch_size
        self._getters = [_getter(column, times_as_texts) for column in columns]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows in parts of 16 MiB at most, and of `fetch_size` rows."""
        rows: list[list[Any]] = [[] for _ in self._columns]
        count = size = 0
        result = self._result
        parts = [
            (values.append, get, index)
            for index, (values, (get, _)) in enumerate(zip(rows, self._getters, strict=True), 1)
        ]
        sized = [
            values for values, column in zip(rows, self._columns, strict=True) if _is_long(column)
        ]
        while result.next():
            for append, get, index in parts:
                append(get(result, index))
            count += 1
            size += sum(len(values[-1] or ()) for values in sized)
            if count == self._fetch_size or size > _PART_BYTES:
                yield self._batch(rows)
                for values in rows:
                    values.clear()
                count = size = 0
        if count:
            yield self._batch(rows)

    def _batch(self, rows: list[list[Any]]) -> pa.RecordBatch:
        arrays = [
            pa.array(values, type_) for values, (_, type_) in zip(rows, self._getters, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, [column.name for column in self._columns])


def to_rows(values: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    """Converts rows of a reader to `columns`. Raises ArrowInvalid for a value that does not fit.

    A text becomes a value of a nested type as JSON.
    """
    arrays = [
        nested_column(array.to_pylist(), field)
        if pa.types.is_nested(field.type) and pa.types.is_string(array.type)
        else array
        for array, field in zip(values.columns, columns, strict=True)
    ]
    return conform(pa.RecordBatch.from_arrays(arrays, columns.names), columns, _CONVERSION)


def _is_long(column: JdbcColumn) -> bool:
    return column.code in types.TEXTS | types.BINARIES


def _getter(column: JdbcColumn, times_as_texts: bool) -> tuple[Get, pa.DataType]:
    """Returns the function that reads a column, and the type of its values."""
    type_ = column.type
    if pa.types.is_boolean(type_):
        return _unless_null("getBoolean"), type_
    if pa.types.is_signed_integer(type_):
        return _unless_null("getLong"), pa.int64()
    if pa.types.is_float32(type_):
        return _unless_null("getFloat"), type_
    if pa.types.is_float64(type_):
        return _unless_null("getDouble"), type_
    if pa.types.is_binary(type_):
        return _bytes, type_
    if pa.types.is_list(type_):
        return _ArrayGetter(is_json=column.has_json_elements), pa.list_(pa.string())
    if times_as_texts and pa.types.is_temporal(type_):
        return _time_text, pa.string()
    if column.is_zoned:
        return _TimeGetter("java.time.OffsetDateTime"), pa.string()
    if pa.types.is_timestamp(type_):
        return _TimeGetter("java.time.LocalDateTime"), pa.string()
    if pa.types.is_date(type_):
        return _TimeGetter("java.time.LocalDate"), pa.string()
    return _text, pa.string()


def _unless_null(method: str) -> Get:
    """Returns a getter of a primitive type of Java, which is zero for null."""

    def get(result: Any, index: int) -> Any:
        value = getattr(result, method)(index)
        return value if value or not result.wasNull() else None

    return get


def _text(result: Any, index: int) -> str | None:
    value = result.getString(index)
    return None if value is None else str(value)


def _time_text(result: Any, index: int) -> str | None:
    """Returns the text of a time, whose offset has two digits for the hours."""
    text = _text(result, index)
    return None if text is None else _SHORT_OFFSET.sub(r"\g<1>0\g<2>", text)


def _bytes(result: Any, index: int) -> bytes | None:
    value = result.getBytes(index)
    return None if value is None else bytes(value)


class _TimeGetter:
    """A getter of times as ISO text, by a class of Java that the driver may not support."""

    def __init__(self, name: str) -> None:
        self._class: Any = java_class(name)

    def __call__(self, result: Any, index: int) -> str | None:
        import jpype

        if self._class is not None:
            try:
                value = result.getObject(index, self._class)
                return None if value is None else str(value)
            except jpype.JException:
                self._class = None
        return _text(result, index)


class _ArrayGetter:
    """A getter of arrays as lists of texts. The elements of an array of JSON may be bytes."""

    def __init__(self, *, is_json: bool) -> None:
        self._is_json = is_json

    def __call__(self, result: Any, index: int) -> list[str | None] | None:
        value = result.getArray(index)
        return None if value is None else [self._text(each) for each in value.getArray()]

    def _text(self, value: Any) -> str | None:
        """Returns the text of a number, a text, bytes, or a time; JSON for an array."""
        import jpype

        if value is None:
            return None
        if isinstance(value, java_class("java.sql.Timestamp")):
            return str(value.toLocalDateTime())
        if isinstance(value, java_class("java.sql.Blob")):
            value = value.getBytes(1, int(value.length()))
        if isinstance(value, jpype.JArray(jpype.JByte)):
            data = bytes(value)
            return data.decode() if self._is_json else base64.b64encode(data).decode()
        if isinstance(value, java_class("java.sql.Array")):
            value = value.getArray()
        if isinstance(value, jpype.JArray):
            return f"[{', '.join(map(self._json, value))}]"
        return str(value)

    def _json(self, value: Any) -> str:
        is_number = isinstance(value, java_class("java.lang.Number"))
        text = self._text(value)
        return str(text) if is_number else json.dumps(text, ensure_ascii=False)
