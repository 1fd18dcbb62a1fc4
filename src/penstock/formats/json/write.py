"""Arrow to JSON texts by arro3 (arrow-json), with what it lacks done beforehand."""

from __future__ import annotations

import io
from typing import Any

import arro3.io
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import EncodeError
from penstock.sdk.kit.columns import cast, is_list, rebuild
from penstock.sdk.kit.lines import split
from penstock.sdk.kit.values import Times, text_type, to_text


def lines(rows: pa.RecordBatch, times: Times, nulls: bool) -> bytes:
    """One line for each row. Raises where a row has no JSON."""
    columns = [_writable(column, times) for column in rows.columns]
    if not columns:
        return b"{}\n" * int(rows.num_rows)
    ready = pa.RecordBatch.from_arrays(columns, names=rows.schema.names)
    out = io.BytesIO()
    arro3.io.write_ndjson(ready, out, explicit_nulls=nulls)
    return out.getvalue()


def payloads(rows: pa.RecordBatch, times: Times, nulls: bool) -> pa.BinaryArray:
    """One payload for each row. Raises where a row has no JSON."""
    texts = split(lines(rows, times, nulls))
    if len(texts) != rows.num_rows:
        raise EncodeError("the rows have no JSON")
    return texts


Group = tuple[npt.NDArray[np.int64] | None, frozenset[str]]
"""Rows (None: all) and the columns that hold NaN or infinity in each of them."""


def groups(rows: pa.RecordBatch) -> list[Group]:
    """The rows by their columns that hold NaN or infinity, which JSON can only say as text."""
    bad = {name: _not_finite(rows.column(name)) for name in rows.schema.names}
    names = [name for name, rows_of in bad.items() if rows_of.any()]
    if not names:
        return [(None, frozenset())]
    kinds, which = np.unique(np.column_stack([bad[n] for n in names]), axis=0, return_inverse=True)
    return [
        (
            np.flatnonzero(which.ravel() == i),
            frozenset(n for n, b in zip(names, kind, strict=True) if b),
        )
        for i, kind in enumerate(kinds)
    ]


def _not_finite(array: Any) -> np.ndarray:
    if pa.types.is_floating(array.type):
        return np.asarray(pc.fill_null(pc.invert(pc.is_finite(array)), False), bool)
    bad = np.zeros(len(array), bool)
    if pa.types.is_struct(array.type):
        for place in range(array.type.num_fields):
            bad |= _not_finite(array.field(place))
    elif is_list(array.type) or pa.types.is_map(array.type):
        inner = array.values if is_list(array.type) else array.items
        before = np.concatenate([[0], np.cumsum(_not_finite(inner))])
        offsets = array.offsets.to_numpy()
        bad = before[offsets[1:]] > before[offsets[:-1]]
    return bad


def _writable(array: pa.Array, times: Times) -> pa.Array:
    wanted = _mapped(array.type, lambda leaf: text_type(leaf, times))
    if wanted.equals(array.type):
        return array
    return rebuild(array, wanted, lambda values, type_: to_text(values, type_, times))


def quoted(rows: pa.RecordBatch, names: frozenset[str]) -> pa.RecordBatch:
    """The rows with the floats of these columns as text."""
    for place, name in enumerate(rows.schema.names):
        if name in names:
            column = rows.column(place)
            texts = rebuild(column, _quoted(column.type), _float_text)
            rows = rows.set_column(place, name, texts)
    return rows


def _float_text(array: pa.Array, type_: pa.DataType) -> pa.Array:
    if not pa.types.is_floating(array.type):
        return cast(array, type_)
    names = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}
    texts = [None if v is None else names.get(repr(v), repr(v)) for v in array.to_pylist()]
    return pa.array(texts, pa.string())


def _quoted(type_: pa.DataType) -> pa.DataType:
    return _mapped(type_, lambda leaf: pa.string() if pa.types.is_floating(leaf) else leaf)


def _mapped(type_: pa.DataType, leaf: Any) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct([f.with_type(_mapped(f.type, leaf)) for f in type_])
    if is_list(type_):
        return pa.list_(_mapped(type_.value_type, leaf))
    if pa.types.is_map(type_):
        return pa.map_(pa.string(), _mapped(type_.item_type, leaf))
    return leaf(type_)
