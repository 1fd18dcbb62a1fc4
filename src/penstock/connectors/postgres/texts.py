"""Values as PostgreSQL writes and reads them in text.

Source of the forms: https://www.postgresql.org/docs/current/datatype.html
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from penstock.connectors.postgres.literals import parse_array
from penstock.connectors.postgres.stored import check_stored
from penstock.connectors.postgres.structure import Structure
from penstock.core.errors import Rejected
from penstock.sdk.columns.conversion import TextConversion
from penstock.sdk.columns.display import json_of, leaf_text
from penstock.sdk.columns.type_names import is_list
from penstock.sdk.database.texts import parse_json, rows_of_texts


class _Conversion(TextConversion):
    """A conversion of texts of PostgreSQL."""

    def _parse(self, array: pa.StringArray, type_: pa.DataType) -> pa.Array:
        if pa.types.is_binary(type_):
            return pa.array([_bytes(text) for text in array.to_pylist()], type_)
        if pa.types.is_floating(type_):
            return _floats(array, type_)
        if pa.types.is_boolean(type_):
            array = pc.if_else(pc.equal(array, "t"), "true", array)
            array = pc.if_else(pc.equal(array, "f"), "false", array)
        return super()._parse(array, type_)


def _floats(texts: pa.StringArray, type_: pa.DataType) -> pa.Array:
    values = texts.cast(type_)
    is_infinite = pc.and_(pc.is_inf(values), pc.invert(pc.ends_with(texts, "Infinity")))
    if pc.any(is_infinite).as_py():
        raise pa.ArrowInvalid
    return values


_CONVERSION = _Conversion()


def to_rows(texts: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    """Converts columns of text to `columns`. Values of nested types are texts of arrays, or JSON.

    Raises ArrowInvalid for a text that is not a value of its column.
    """
    return rows_of_texts(texts, columns, _CONVERSION, _parsed)


def parse_csv(data: bytes, names: Sequence[str]) -> pa.RecordBatch:
    """Parses rows of COPY in the format `csv` as columns of text."""
    table = csv.read_csv(
        pa.BufferReader(data),
        csv.ReadOptions(column_names=names, use_threads=False, block_size=len(data) + 1),
        csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    return table.combine_chunks().to_batches()[0]


class Target(NamedTuple):
    """The columns of a table that is written, and the structures of their types."""

    columns: pa.Schema
    types: Mapping[str, Structure]


def as_texts(rows: pa.RecordBatch, target: Target) -> pa.RecordBatch:
    """Returns rows in forms that CSV has without loss, for columns of `target`.

    Raises Rejected for a value that its column would change, or a text with the character NUL.
    """
    arrays = []
    for column, field in zip(rows.columns, rows.schema, strict=True):
        check_stored(column, field.name, target.types[field.name])
        arrays.append(_as_text(column, field, target.columns.field(field.name)))
        _check_nul(arrays[-1], field.name)
    return pa.RecordBatch.from_arrays(arrays, rows.schema.names)


def to_csv(texts: pa.RecordBatch) -> bytes:
    """Returns rows of `as_texts` for COPY in the format `csv`."""
    data = io.BytesIO()
    csv.write_csv(texts, data, csv.WriteOptions(include_header=False))
    return data.getvalue()


def _as_text(column: pa.Array, field: pa.Field, target: pa.Field) -> pa.Array:
    """Returns a column in a form that CSV has without loss."""
    type_ = field.type
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        return _text_array(column, lambda value: f"\\x{value.as_py().hex()}")
    if pa.types.is_nested(type_):
        is_array = is_list(type_) and is_list(target.type)
        return _text_array(column, _array_literal if is_array else lambda v: json_of(v, field))
    return column


def _check_nul(column: pa.Array, name: str) -> None:
    if pa.types.is_string(column.type) and pc.any(pc.match_substring(column, "\0")).as_py():
        raise Rejected(
            f'column "{name}": PostgreSQL does not store the character NUL in a text',
            code="wrong-type", hint="Remove the character in a transform.",
        )  # fmt: skip


def _text_array(column: pa.Array, to_text: Callable[[pa.Scalar], str]) -> pa.StringArray:
    return pa.array([to_text(value) if value.is_valid else None for value in column], pa.string())


def _array_literal(values: pa.Scalar) -> str:
    """Returns a list as the text of an array."""
    return f"{{{','.join(map(_item_literal, values.values))}}}"


def _item_literal(value: pa.Scalar) -> str:
    if not value.is_valid:
        return "NULL"
    binary = pa.types.is_binary(value.type) or pa.types.is_large_binary(value.type)
    if binary:
        text = f"\\x{value.as_py().hex()}"
    else:
        text = _array_literal(value) if is_list(value.type) else leaf_text(value)
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _bytes(text: str | None) -> bytes | None:
    """Returns the bytes of a `bytea`, or of base64, the form of bytes in JSON."""
    if text is None:
        return None
    try:
        is_hex = text.startswith("\\x")
        return bytes.fromhex(text[2:]) if is_hex else base64.b64decode(text, validate=True)
    except ValueError:
        raise pa.ArrowInvalid from None


def _parsed(text: str, type_: pa.DataType) -> Any:
    if is_list(type_) and not text.startswith("["):
        return _items(parse_array(text), type_.value_type)
    return parse_json(text, type_)


def _items(items: list[Any], type_: pa.DataType) -> list[Any]:
    """Returns the items of an array, of which an array of a domain is a text.

    Raises ValueError if the array has more dimensions than its column.
    """
    if is_list(type_):
        lists = [parse_array(item) if isinstance(item, str) else item for item in items]
        return [None if item is None else _items(item, type_.value_type) for item in lists]
    if any(isinstance(item, list) for item in items):
        raise ValueError("expected an array of fewer dimensions")
    return items
