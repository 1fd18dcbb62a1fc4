"""Arrow to JSON texts by arro3 (arrow-json), after conversion of types that arro3 lacks."""

from __future__ import annotations

import io
from typing import Any

import arro3.io
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import EncodeError
from penstock.sdk.columns.conform import cast, is_list, rebuild
from penstock.sdk.columns.json_text import Embedding
from penstock.sdk.columns.text_values import Times, text_type, to_text
from penstock.sdk.encoding.lines import split_lines


def lines(rows: pa.RecordBatch, times: Times, nulls: bool) -> bytes:
    """Returns one line per row. Columns of JSON text become the values of the text.

    Raises an exception for a row that JSON cannot express.
    """
    embedding = Embedding()
    columns = [
        _writable(embedding.with_placeholders(column, field), times)
        for column, field in zip(rows.columns, rows.schema, strict=True)
    ]
    if not columns:
        return b"{}\n" * int(rows.num_rows)
    writable = pa.RecordBatch.from_arrays(columns, names=rows.schema.names)
    out = io.BytesIO()
    arro3.io.write_ndjson(writable, out, explicit_nulls=nulls)
    return embedding.embed(out.getvalue())


def payloads(rows: pa.RecordBatch, times: Times, nulls: bool) -> pa.BinaryArray:
    """Returns one payload per row. Raises an exception for a row that JSON cannot express."""
    texts = split_lines(lines(rows, times, nulls))
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


def _writable(array: pa.Array, times: Times) -> pa.Array:
    target = _map_leaves(array.type, lambda leaf: text_type(leaf, times))
    if target.equals(array.type):
        return array
    return rebuild(array, target, lambda values, type_: to_text(values, type_, times))


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
