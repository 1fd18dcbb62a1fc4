"""Sizes of rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.sdk.columns.type_names import is_list


def row_sizes(rows: pa.RecordBatch) -> np.ndarray:
    """Returns the bytes of the values of each row, which do not depend on the rows beside it."""
    sizes = np.zeros(rows.num_rows, dtype=np.int64)
    for column in rows.columns:
        sizes += _sizes(column)
    return sizes


def _sizes(array: pa.Array) -> np.ndarray | int:
    type_ = array.type
    if pa.types.is_struct(type_):
        return sum((_sizes(child) for child in array.flatten()), np.zeros(len(array), np.int64))
    if pa.types.is_map(type_) or is_list(type_):
        return _sizes_of_items(array)
    if pa.types.is_null(type_):
        return 0
    try:
        return (int(type_.bit_width) + 7) // 8
    except ValueError:  # Text or bytes.
        lengths: np.ndarray = pc.fill_null(pc.binary_length(array), 0).to_numpy()
        return lengths


def _sizes_of_items(array: pa.ListArray | pa.MapArray) -> np.ndarray:
    offsets = array.offsets.to_numpy()
    inside = slice(int(offsets[0]), int(offsets[-1]))
    is_map = pa.types.is_map(array.type)
    children = [array.keys, array.items] if is_map else [array.values]
    items = np.zeros(inside.stop - inside.start, dtype=np.int64)
    for child in children:
        items += _sizes(child[inside])
    ends = np.concatenate([[0], np.cumsum(items)])
    sizes = np.diff(ends[offsets - offsets[0]])
    return np.where(array.is_valid().to_numpy(zero_copy_only=False), sizes, 0)
