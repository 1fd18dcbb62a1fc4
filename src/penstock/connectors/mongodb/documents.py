"""Documents as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from typing import cast as cast_type

import numpy as np
import pyarrow as pa

from penstock.connectors.mongodb.client import row_codec_options, to_json
from penstock.core.errors import DecodeError
from penstock.core.text import shorten
from penstock.sdk.bisect_failures import FailedRow
from penstock.sdk.columns.conform import MissingValue, WrongType, rebuild
from penstock.sdk.columns.conversion import cast
from penstock.sdk.columns.json_mark import is_json
from penstock.sdk.columns.rows import INVALID, array_of
from penstock.sdk.columns.type_names import is_list, sql_name, with_article
from penstock.sdk.database.row_conversion import RowConversion

_PLAIN = frozenset({"NoneType", "bool", "int", "Int64", "float", "str", "bytes"})
"""The classes of values of BSON that are values of Python."""
_TIMES = frozenset({"NoneType", "datetime"})
Document = Mapping[str, Any]
FieldOf = Callable[[str], str]
_LENGTH = 4
_TIMESTAMP = pa.timestamp("us", tz="UTC")
_NAMES = {
    "Regex": "regex", "Code": "javascript", "DBRef": "dbPointer", "MinKey": "minKey",
    "MaxKey": "maxKey", "Timestamp": "timestamp", "DatetimeMS": "date", "ObjectId": "objectId",
    "Decimal128": "decimal", "UUID": "binData", "Binary": "binData", "bytes": "binData",
    "dict": "object", "list": "array", "str": "string", "bool": "bool", "int": "int",
    "Int64": "long", "float": "double", "datetime": "date",
}  # fmt: skip
"""The aliases of the types of BSON, by the classes of their values."""


class Undecodable:
    """The bytes of a document that is not valid BSON, such as text that is not UTF-8."""

    def __init__(self, content: bytes, error: Exception) -> None:
        self.content = content
        message = shorten(" ".join(str(error).split()), 200)
        code = "not-utf8" if "utf" in message.lower() else "undecodable"
        self.error = DecodeError(f"the document is not valid BSON: {message}", code=code)


def decode_documents(content: bytes, options: Any = None) -> Sequence[Document | Undecodable]:
    """Returns the documents of a response, by default with the options of rows."""
    import bson

    options = options or row_codec_options()
    try:
        documents: list[Document] = bson.decode_all(content, options)
        return documents
    except bson.errors.InvalidBSON:
        return [_decode(each, options) for each in split_documents(content)]


def split_documents(content: bytes) -> Iterator[bytes]:
    """Yields the bytes of each document of a response."""
    start = 0
    while start < len(content):
        stop = start + int.from_bytes(content[start : start + _LENGTH], "little")
        yield content[start:stop]
        start = stop


def _decode(content: bytes, options: Any) -> Document | Undecodable:
    import bson

    try:
        document: Document = bson.decode(content, options)
        return document
    except bson.errors.InvalidBSON as error:
        return Undecodable(content, error)


def to_rows(
    documents: Sequence[Document | Undecodable], conversion: RowConversion, field_of: FieldOf
) -> Iterator[pa.RecordBatch]:
    """Yields documents as rows. Documents that do not fit become bad records."""
    columns = conversion.columns

    def attempt(start: int, stop: int) -> pa.RecordBatch:
        part = documents[start:stop]
        if Undecodable in {*map(type, part)}:
            for index, document in enumerate(part):
                if isinstance(document, Undecodable):
                    raise FailedRow(index, document.error)
        return columns_of(cast_type(Sequence[Document], part), columns, field_of)

    def payload(index: int) -> bytes:
        document = documents[index]
        if isinstance(document, Undecodable):
            return document.content
        return to_json(document).encode(errors="backslashreplace")

    yield from conversion.converted(len(documents), attempt, payload)


def columns_of(
    documents: Sequence[Document], columns: pa.Schema, field_of: FieldOf
) -> pa.RecordBatch:
    """Returns documents in columns. Raises WrongType, MissingValue or DecodeError."""
    names = [field_of(name) for name in columns.names]
    arrays = [
        _array([each.get(name) for each in documents], field)
        for name, field in zip(names, columns, strict=True)
    ]
    if not arrays:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(documents), pa.struct([])))
    return pa.RecordBatch.from_arrays(arrays, schema=columns)


def _array(values: list[Any], field: pa.Field) -> pa.Array:
    """Returns values of BSON as an array. Raises WrongType, MissingValue or DecodeError."""
    try:
        classes = {each.__name__ for each in {*map(type, values)}}
        if "datetime" in classes and classes <= _TIMES and not is_json(field):
            array = rebuild(pa.array(values, _TIMESTAMP), field.type, cast)
        else:
            if is_json(field) or not classes <= _PLAIN:
                values = [_plain(value, field) for value in values]
            array = array_of(values, field.type, cast)
    except WrongType as error:
        raise error.within(field.name) from None
    except INVALID as error:
        raise _wrong_type(values, field) from error
    if array.null_count and not field.nullable:
        raise MissingValue(field.name)
    return array


def _wrong_type(values: list[Any], field: pa.Field) -> DecodeError:
    value = next((value for value in values if value is not None), None)
    text = shorten(to_json(value), 100)
    name = _NAMES.get(type(value).__name__, type(value).__name__)
    return DecodeError(
        f'column "{field.name}": {text} ({name}) is not {with_article(sql_name(field.type))}',
        code="wrong-type",
    )


def _plain(value: Any, field: pa.Field) -> Any:
    """Returns a value of Python in place of one of BSON, for a field."""
    if value is None or type(value) in (int, float, str, bool, bytes):
        return to_json(value) if value is not None and is_json(field) else value
    if is_json(field):
        return to_json(value)
    type_ = field.type
    if isinstance(value, dict):
        if pa.types.is_struct(type_):
            return {each.name: _plain(value.get(each.name), each) for each in type_}
        if pa.types.is_map(type_):
            return {key: _plain(item, type_.item_field) for key, item in value.items()}
    elif isinstance(value, list) and is_list(type_):
        return [_plain(item, type_.value_field) for item in value]
    convert = _LEAVES.get(type(value).__name__)
    if convert is not None:
        return convert(value, type_)
    if not isinstance(value, dict | list):
        raise TypeError(f"{type(value).__name__} has no type of Arrow")
    return value


def _object_id(value: Any, type_: pa.DataType) -> Any:
    return value.binary if pa.types.is_binary(type_) else str(value)


def _uuid(value: Any, type_: pa.DataType) -> Any:
    return value.bytes if pa.types.is_binary(type_) else str(value)


def _decimal(value: Any, type_: pa.DataType) -> Any:
    return str(value) if pa.types.is_string(type_) else value.to_decimal()


def _time(value: datetime, _type: pa.DataType) -> datetime:
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value


_LEAVES: Mapping[str, Callable[[Any, pa.DataType], Any]] = {
    "ObjectId": _object_id,
    "UUID": _uuid,
    "Decimal128": _decimal,
    "Int64": lambda value, type_: int(value),
    "Binary": lambda value, type_: bytes(value),
    "datetime": _time,
    "DatetimeMS": lambda value, type_: np.datetime64(int(value), "ms"),
}
"""Conversions by the class of a value."""
