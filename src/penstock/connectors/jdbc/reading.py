"""Rows of results as Arrow batches.

Numbers and binary values keep their types. Decimals and times are texts, which have all digits,
until they are converted to the columns of a source.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from penstock.connectors.jdbc import types
from penstock.connectors.jdbc.types import JdbcColumn
from penstock.sdk.columns.conform import conform
from penstock.sdk.columns.conversion import TextConversion
from penstock.sdk.database.texts import nested_column
from penstock.sdk.java import java_class

Get = Callable[[], Any]
"""Returns the value of a column in the current row of a result, or None."""
Bind = Callable[[Any, int], Get]
"""Returns the getter of a column of a result, by the number of the column."""
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
        readers = [_reader(column, times_as_texts) for column in columns]
        self._getters = [bind(result, index) for index, (bind, _) in enumerate(readers, 1)]
        self._types = [type_ for _, type_ in readers]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows in parts of 16 MiB at most, and of `fetch_size` rows."""
        rows: list[list[Any]] = [[] for _ in self._columns]
        count = size = 0
        next_row = self._result.next
        appends = [values.append for values in rows]
        parts = [*zip(appends, self._getters, strict=True)]
        sized = [
            values for values, column in zip(rows, self._columns, strict=True) if _is_long(column)
        ]
        while next_row():
            for append, get in parts:
                append(get())
            count += 1
            for values in sized:
                size += len(values[-1] or ())
            if count == self._fetch_size or size > _PART_BYTES:
                yield self._batch(rows)
                for values in rows:
                    values.clear()
                count = size = 0
        if count:
            yield self._batch(rows)

    def _batch(self, rows: list[list[Any]]) -> pa.RecordBatch:
        arrays = [pa.array(values, type_) for values, type_ in zip(rows, self._types, strict=True)]
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


def _reader(column: JdbcColumn, times_as_texts: bool) -> tuple[Bind, pa.DataType]:
    """Returns the function that makes the getter of a column, and the type of its values."""
    type_ = column.type
    if pa.types.is_boolean(type_):
        return partial(_primitive, "getBoolean"), type_
    if pa.types.is_signed_integer(type_):
        return partial(_primitive, "getLong"), pa.int64()
    if pa.types.is_float32(type_):
        return partial(_primitive, "getFloat"), type_
    if pa.types.is_float64(type_):
        return partial(_primitive, "getDouble"), type_
    if pa.types.is_binary(type_):
        return _bytes, type_
    if pa.types.is_list(type_):
        return partial(_ArrayGetter, column.has_json_elements), pa.list_(pa.string())
    if times_as_texts and pa.types.is_temporal(type_):
        return _time_text, pa.string()
    if column.is_zoned:
        return partial(_TimeGetter, "java.time.OffsetDateTime"), pa.string()
    if pa.types.is_timestamp(type_):
        return partial(_TimeGetter, "java.time.LocalDateTime"), pa.string()
    if pa.types.is_date(type_):
        return partial(_TimeGetter, "java.time.LocalDate"), pa.string()
    return _text, pa.string()


def _primitive(method: str, result: Any, index: int) -> Get:
    """Returns a getter of a primitive type of Java, which is zero for null."""
    read, was_null = getattr(result, method), result.wasNull

    def get() -> Any:
        value = read(index)
        return value if value or not was_null() else None

    return get


def _text(result: Any, index: int) -> Callable[[], str | None]:
    read = result.getString

    def get() -> str | None:
        value = read(index)
        return None if value is None else str(value)

    return get


def _time_text(result: Any, index: int) -> Get:
    """Returns a getter of times as texts, whose offsets have two digits for the hours."""
    read = _text(result, index)

    def get() -> str | None:
        text = read()
        return None if text is None else _SHORT_OFFSET.sub(r"\g<1>0\g<2>", text)

    return get


def _bytes(result: Any, index: int) -> Get:
    read = result.getBytes

    def get() -> bytes | None:
        value = read(index)
        return None if value is None else bytes(value)

    return get


class _TimeGetter:
    """A getter of times as ISO text, by a class of Java that the driver may not support."""

    def __init__(self, class_name: str, result: Any, index: int) -> None:
        self._class: Any = java_class(class_name)
        self._read, self._text, self._index = result.getObject, _text(result, index), index

    def __call__(self) -> str | None:
        import jpype

        if self._class is not None:
            try:
                value = self._read(self._index, self._class)
                return None if value is None else str(value)
            except jpype.JException:
                self._class = None
        return self._text()


class _ArrayGetter:
    """A getter of arrays as lists of texts. The elements of an array of JSON may be bytes."""

    def __init__(self, is_json: bool, result: Any, index: int) -> None:
        self._read, self._index, self._is_json = result.getArray, index, is_json

    def __call__(self) -> list[str | None] | None:
        value = self._read(self._index)
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
