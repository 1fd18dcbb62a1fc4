"""Arrow to JSON texts by arro3 (arrow-json), after conversion of types that arro3 lacks."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import arro3.io
import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import EncodeError, PlanError
from penstock.core.panics import panics_as_exceptions
from penstock.formats.json.decimals import Decimals, is_text, write_decimals
from penstock.sdk.columns.conform import conform, rebuild
from penstock.sdk.columns.conversion import cast
from penstock.sdk.columns.json_text import Embedding
from penstock.sdk.columns.scalar_parsing import NOT_FINITE, Times
from penstock.sdk.columns.text_output import text_type, to_text
from penstock.sdk.columns.type_names import is_list
from penstock.sdk.encoding.lines import split_lines

_EMBEDDED = pa.string_view()
"""The type of placeholders of written values, which no other column has."""


def lines(rows: pa.RecordBatch, times: Times, nulls: bool, decimals: Decimals) -> bytes:
    """Returns one line per row. Columns of JSON text become the values of the text.

    Without `nulls` the keys of null fields are omitted. Entries of maps are kept: a key of a map is
    data. Raises an exception for a row that JSON cannot express.
    """
    embedding = Embedding()
    columns = [
        _writable(embedding.with_placeholders(column, field), times, decimals)
        for column, field in zip(rows.columns, rows.schema, strict=True)
    ]
    if not columns:
        return b"{}\n" * int(rows.num_rows)
    for name in rows.schema.names:
        if "\0" in name:  # arro3 would end the key there.
            raise PlanError(
                f"cannot write the column {name!r} as JSON: its name has NUL", code="invalid-name",
                hint="Rename the column in a transform.",
            )  # fmt: skip
    columns = [_with_quoted_floats(column, embedding) for column in columns]
    if not nulls:
        columns = [_with_null_entries(column, embedding) for column in columns]
    return embedding.embed(_write(columns, rows.schema.names, nulls))


def _write(columns: Sequence[pa.Array], names: Sequence[str], nulls: bool) -> bytes:
    out = io.BytesIO()
    rows = pa.RecordBatch.from_arrays([_without_offset(column) for column in columns], names)
    with panics_as_exceptions():
        arro3.io.write_ndjson(rows, out, explicit_nulls=nulls)
    return out.getvalue()


def _without_offset(array: pa.Array) -> pa.Array:
    """Returns an array that is no slice: arro3 panics on a slice of structs within structs."""
    is_slice = pa.types.is_nested(array.type) and array.offset
    return array.take(pa.array(range(len(array)), pa.int64())) if is_slice else array


def _with_quoted_floats(array: pa.Array, embedding: Embedding) -> pa.Array:
    """Returns an array with placeholders in place of floats, where NaN or infinity is among them.

    JSON has these values as text only. arro3 writes the others.
    """

    def quote(values: pa.Array, type_: pa.DataType) -> pa.Array:
        if values.type == type_:
            return values
        written = _write([values], ["v"], nulls=True).splitlines()
        numbers = (line.removeprefix(b'{"v":')[:-1] for line in written)
        names = {text: f'"{name}"'.encode() for text, name in NOT_FINITE.items()}
        placeholders = [
            None if value is None else embedding.placeholder(names.get(repr(value), number))
            for value, number in zip(values.to_pylist(), numbers, strict=True)
        ]
        return pa.array(placeholders, type_)

    target = _type_with_quoted(array)
    return array if target == array.type else rebuild(array, target, quote)


def _type_with_quoted(array: pa.Array) -> pa.DataType:
    """Returns the type of an array with LARGE_STRING for floats among which some are not finite."""
    type_ = array.type
    if pa.types.is_struct(type_):
        children = (array.field(index) for index in range(type_.num_fields))
        fields = zip(type_, children, strict=True)
        return pa.struct([field.with_type(_type_with_quoted(child)) for field, child in fields])
    if is_list(type_):
        return pa.list_(type_.value_field.with_type(_type_with_quoted(array.values)))
    if pa.types.is_map(type_):
        item = type_.item_field.with_type(_type_with_quoted(array.items))
        return pa.map_(type_.key_field, item)
    if pa.types.is_floating(type_) and pc.any(pc.invert(pc.is_finite(array))).as_py():
        return pa.large_string()
    return type_


def _with_null_entries(array: pa.Array, embedding: Embedding) -> pa.Array:
    """Returns an array with text in place of the values of maps that contain null.

    arro3 omits null values of maps and null fields alike.
    """

    def write_values(values: pa.Array, type_: pa.DataType) -> pa.Array:
        if type_ != _EMBEDDED:
            return values
        written = _write([_with_null_entries(values, embedding)], ["v"], nulls=False)
        texts = [
            b"null" if line == b"{}" else line.removeprefix(b'{"v":')[:-1]
            for line in written.splitlines()
        ]
        placeholders = [embedding.placeholder(embedding.embed(text)) for text in texts]
        return pa.array(placeholders, type_)

    target = _type_with_texts(array)
    return array if target == array.type else rebuild(array, target, write_values)


def _type_with_texts(array: pa.Array) -> pa.DataType:
    """Returns the type of an array with `_EMBEDDED` for the values of maps that contain null."""
    type_ = array.type
    if pa.types.is_struct(type_):
        children = (array.field(index) for index in range(type_.num_fields))
        fields = zip(type_, children, strict=True)
        return pa.struct([field.with_type(_type_with_texts(child)) for field, child in fields])
    if is_list(type_):
        return pa.list_(type_.value_field.with_type(_type_with_texts(array.values)))
    if pa.types.is_map(type_):
        items = array.items
        item_type = _EMBEDDED if items.null_count else _type_with_texts(items)
        return pa.map_(type_.key_field, type_.item_field.with_type(item_type))
    return type_


def without_zone(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Returns rows whose times have no zone."""
    schema = pa.schema([field.with_type(_local_type(field.type)) for field in rows.schema])
    return rows if schema == rows.schema else conform(rows, schema)


def _local_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_local_type(field.type)) for field in type_])
    if is_list(type_):
        return pa.list_(type_.value_field.with_type(_local_type(type_.value_type)))
    if pa.types.is_map(type_):
        return pa.map_(type_.key_field, type_.item_field.with_type(_local_type(type_.item_type)))
    return pa.timestamp(type_.unit) if pa.types.is_timestamp(type_) else type_


def with_hex(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Returns rows in which binary values are texts of hexadecimal digits."""
    columns, fields = list(rows.columns), list(rows.schema)
    for index, field in enumerate(fields):
        if _has_binary(field.type):
            target = _map_leaves(field.type, _hex)
            columns[index] = rebuild(columns[index], target, _write_hex)
            fields[index] = field.with_type(target)
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, rows.schema.metadata))


def without_not_finite(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Returns rows with null in place of NaN and infinity, except for keys of maps."""
    columns = [_without_not_finite(column) for column in rows.columns]
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def _without_not_finite(array: pa.Array) -> pa.Array:
    target = _type_with_quoted(array)
    return array if target == array.type else rebuild(rebuild(array, target, _finite), array.type)


def _finite(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Returns the texts of floats if `type_` is another one: null for NaN and infinity."""
    if values.type == type_:
        return values
    return pc.if_else(pc.is_finite(values), values, pa.scalar(None, values.type)).cast(type_)


def _is_binary(type_: pa.DataType) -> bool:
    return bool(pa.types.is_binary(type_) or pa.types.is_large_binary(type_))


def _has_binary(type_: pa.DataType) -> bool:
    if type_.num_fields:
        return any(_has_binary(type_.field(index).type) for index in range(type_.num_fields))
    return _is_binary(type_)


def _hex(type_: pa.DataType) -> pa.DataType:
    return pa.string() if _is_binary(type_) else type_


def _write_hex(values: pa.Array, type_: pa.DataType) -> pa.Array:
    if not _is_binary(values.type):
        return cast(values, type_)
    return pa.array([None if each is None else each.hex() for each in values.to_pylist()], type_)


def payloads(
    rows: pa.RecordBatch, times: Times, nulls: bool, decimals: Decimals = "number"
) -> pa.BinaryArray:
    """Returns one payload per row. Raises an exception for a row that JSON cannot express."""
    texts = split_lines(lines(rows, times, nulls, decimals))
    if len(texts) != rows.num_rows:
        raise EncodeError("cannot write the rows as JSON")
    return texts


def _writable(array: pa.Array, times: Times, decimals: Decimals) -> pa.Array:
    array = _in_whole_units(array, times)
    try:
        return _as_written(array, times, decimals, far=False)
    except pa.ArrowInvalid:
        return _as_written(array, times, decimals, far=True)


def _as_written(array: pa.Array, times: Times, decimals: Decimals, far: bool) -> pa.Array:
    def leaf_type(leaf: pa.DataType) -> pa.DataType:
        return pa.string() if is_text(leaf, decimals) else text_type(leaf, times, far=far)

    def write_leaf(values: pa.Array, type_: pa.DataType) -> pa.Array:
        if is_text(values.type, decimals):
            return write_decimals(values, decimals).cast(type_)
        if pa.types.is_floating(values.type) and pa.types.is_string(type_):
            return _key_texts(values)
        return to_text(values, type_, times)

    target = _map_leaves(array.type, leaf_type)
    return array if target.equals(array.type) else rebuild(array, target, write_leaf)


def _key_texts(keys: pa.Array) -> pa.Array:
    """Returns floats as keys of objects."""
    texts = keys.cast(pa.string())
    for text, name in NOT_FINITE.items():
        texts = pc.if_else(pc.equal(texts, text), name, texts)
    return texts


def _in_whole_units(array: pa.Array, times: Times) -> pa.Array:
    """Returns integers in place of times, if no time has a fraction of the unit."""
    unit = {"seconds": "s", "millis": "ms"}.get(times)
    if unit is None:
        return array

    def write_leaf(values: pa.Array, type_: pa.DataType) -> pa.Array:
        if not pa.types.is_timestamp(values.type):
            return cast(values, type_)
        return values.cast(pa.timestamp(unit, values.type.tz)).cast(type_)

    def leaf_type(leaf: pa.DataType) -> pa.DataType:
        return pa.int64() if pa.types.is_timestamp(leaf) else leaf

    target = _map_leaves(array.type, leaf_type)
    try:
        return array if target.equals(array.type) else rebuild(array, target, write_leaf)
    except pa.ArrowInvalid:
        return array


def _map_leaves(type_: pa.DataType, leaf: Any) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_map_leaves(field.type, leaf)) for field in type_])
    if is_list(type_):
        return pa.list_(_map_leaves(type_.value_type, leaf))
    if pa.types.is_map(type_):
        return pa.map_(pa.string(), _map_leaves(type_.item_type, leaf))
    return leaf(type_)
