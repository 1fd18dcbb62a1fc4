"""Values as PostgreSQL writes and reads them in text.

Source of the forms: https://www.postgresql.org/docs/current/datatype.html
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from penstock.connectors.postgres.stored import check_stored
from penstock.core.errors import Rejected
from penstock.sdk.columns.conversion import TextConversion
from penstock.sdk.columns.display import json_of, leaf_text
from penstock.sdk.columns.type_names import is_list
from penstock.sdk.database.texts import JsonText, parse_json, rows_of_texts


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


def as_texts(rows: pa.RecordBatch, target: pa.Schema) -> pa.RecordBatch:
    """Returns rows in forms that CSV has without loss, for columns of `target`.

    Raises Rejected for a value that its column would change, or a text with the character NUL.
    """
    arrays = []
    for column, field in zip(rows.columns, rows.schema, strict=True):
        check_stored(column, target.field(field.name))
        arrays.append(_as_text(column, field, target.field(field.name)))
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
    text = f"\\x{value.as_py().hex()}" if binary else leaf_text(value)
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
        items = parse_array(text)
        _check_dimensions(items, type_.value_type)
        return items
    return parse_json(text, type_)


def _check_dimensions(items: list[Any], type_: pa.DataType) -> None:
    """Raises ValueError if an array has more dimensions than its column."""
    for item in items:
        if isinstance(item, list):
            if not is_list(type_):
                raise ValueError("expected an array of fewer dimensions")
            _check_dimensions(item, type_.value_type)


_ARRAY_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|([^,{}"]+)|([{},])', re.DOTALL)


def parse_array(text: str) -> list[Any]:
    """Parses the text of an array, such as `{1,NULL,"a b"}`, whose items may be JSON.

    Raises ValueError.

    Source: https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO
    """
    root: list[Any] = []
    nesting, position = [root], 0
    while position < len(text):
        match = _ARRAY_TOKEN.match(text, position)
        if match is None:
            raise ValueError("expected an array")
        quoted, plain, mark = match.groups()
        position = match.end()
        if mark == "{":
            nesting[-1].append([])
            nesting.append(nesting[-1][-1])
        elif mark == "}":
            nesting.pop()
        elif plain is not None:
            nesting[-1].append(None if plain == "NULL" else JsonText(plain))
        elif mark is None:
            nesting[-1].append(JsonText(re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL)))
    if len(nesting) != 1 or len(root) != 1 or not isinstance(root[0], list):
        raise ValueError("expected an array")
    return root[0]
