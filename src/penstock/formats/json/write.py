"""Arrow to JSON texts by arro3 (arrow-json), after conversion of types that arro3 lacks."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import arro3.io
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import EncodeError
from penstock.formats.json.decimals import Decimals, is_text, write_decimals
from penstock.sdk.columns.conform import is_list, rebuild
from penstock.sdk.columns.conversion import cast
from penstock.sdk.columns.json_text import Embedding
from penstock.sdk.columns.text_output import text_type, to_text
from penstock.sdk.columns.text_values import Times
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
    if not nulls:
        columns = [_with_null_entries(column, embedding) for column in columns]
    return embedding.embed(_write(columns, rows.schema.names, nulls))


def _write(columns: Sequence[pa.Array], names: Sequence[str], nulls: bool) -> bytes:
    out = io.BytesIO()
    rows = pa.RecordBatch.from_arrays([_without_offset(column) for column in columns], names)
    arro3.io.write_ndjson(rows, out, explicit_nulls=nulls)
    return out.getvalue()


def _without_offset(array: pa.Array) -> pa.Array:
    """Returns an array that is no slice: arro3 panics on a slice of structs within structs."""
    is_slice = pa.types.is_nested(array.type) and array.offset
    return array.take(pa.array(range(len(array)), pa.int64())) if is_slice else array


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


def payloads(
    rows: pa.RecordBatch, times: Times, nulls: bool, decimals: Decimals = "number"
) -> pa.BinaryArray:
    """Returns one payload per row. Raises an exception for a row that JSON cannot express."""
    texts = split_lines(lines(rows, times, nulls, decimals))
    if len(texts) != rows.num_rows:
        raise EncodeError("cannot write the rows as JSON")
    return texts


Group = tuple[npt.NDArray[np.int64] | None, frozenset[str]]
"""Indexes of rows (None: all), and the columns with NaN or infinity in all of them."""


def groups(rows: pa.RecordBatch) -> list[Group]:
    """Groups rows by their columns with NaN or infinity, which JSON can only express as text."""
    masks = {name: _not_finite(rows.column(name)) for name in rows.schema.names}
    names = [name for name, mask in masks.items() if mask.any()]
    if not names:
        return [(None, frozenset())]
    patterns, pattern_of_row = np.unique(
        np.column_stack([masks[name] for name in names]), axis=0, return_inverse=True
    )
    return [
        (
            np.flatnonzero(pattern_of_row.ravel() == index),
            frozenset(name for name, selected in zip(names, pattern, strict=True) if selected),
        )
        for index, pattern in enumerate(patterns)
    ]


def _not_finite(array: Any) -> np.ndarray:
    if pa.types.is_floating(array.type):
        return np.asarray(pc.fill_null(pc.invert(pc.is_finite(array)), False), bool)
    mask = np.zeros(len(array), bool)
    if pa.types.is_struct(array.type):
        for index in range(array.type.num_fields):
            mask |= _not_finite(array.field(index))
    elif is_list(array.type) or pa.types.is_map(array.type):
        inner = array.values if is_list(array.type) else array.items
        before = np.concatenate([[0], np.cumsum(_not_finite(inner))])
        offsets = array.offsets.to_numpy()
        mask = before[offsets[1:]] > before[offsets[:-1]]
    return mask


def _writable(array: pa.Array, times: Times, decimals: Decimals) -> pa.Array:
    array = _in_whole_units(array, times)

    def leaf_type(leaf: pa.DataType) -> pa.DataType:
        return pa.string() if is_text(leaf, decimals) else text_type(leaf, times)

    def write_leaf(values: pa.Array, type_: pa.DataType) -> pa.Array:
        if is_text(values.type, decimals):
            return write_decimals(values, decimals).cast(type_)
        return to_text(values, type_, times)

    target = _map_leaves(array.type, leaf_type)
    return array if target.equals(array.type) else rebuild(array, target, write_leaf)


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


def quote_floats(rows: pa.RecordBatch, names: frozenset[str]) -> pa.RecordBatch:
    """Converts the floats of columns to text."""
    for index, name in enumerate(rows.schema.names):
        if name in names:
            column = rows.column(index)
            texts = rebuild(column, _quoted_type(column.type), _float_text)
            rows = rows.set_column(index, name, texts)
    return rows


def _float_text(array: pa.Array, type_: pa.DataType) -> pa.Array:
    if not pa.types.is_floating(array.type):
        return cast(array, type_)
    names = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}
    texts = [
        None if value is None else names.get(repr(value), repr(value))
        for value in array.to_pylist()
    ]
    return pa.array(texts, pa.string())


def _quoted_type(type_: pa.DataType) -> pa.DataType:
    return _map_leaves(type_, lambda leaf: pa.string() if pa.types.is_floating(leaf) else leaf)


def _map_leaves(type_: pa.DataType, leaf: Any) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_map_leaves(field.type, leaf)) for field in type_])
    if is_list(type_):
        return pa.list_(_map_leaves(type_.value_type, leaf))
    if pa.types.is_map(type_):
        return pa.map_(pa.string(), _map_leaves(type_.item_type, leaf))
    return leaf(type_)
