"""Floats that documents cannot have: NaN and infinities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import RecordError, Rejected
from penstock.sdk.columns.type_names import is_list


def not_finite(rows: pa.RecordBatch) -> Mapping[int, RecordError]:
    """Returns the errors of rows with NaN or an infinity, also in nested values."""
    errors: dict[int, RecordError] = {}
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        for index in np.unique(_places(column)).tolist():
            message = f'column "{name}" has NaN or an infinity, which is no number in JSON'
            errors.setdefault(index, Rejected(message, code="unencodable"))
    return errors


def _places(array: pa.Array) -> Any:
    """Returns the indexes of the values with a float that is not finite."""
    type_ = array.type
    if pa.types.is_floating(type_):
        return _indexes(pc.invert(pc.is_finite(array)))
    if pa.types.is_struct(type_):
        children = [_places(child) for child in array.flatten()]
        return np.concatenate([np.array([], np.int64), *children])
    if not (is_list(type_) or pa.types.is_map(type_)):
        return np.array([], np.int64)
    offsets = array.offsets.to_numpy()
    parents = np.repeat(np.arange(len(array)), np.diff(offsets))
    values = array.items if pa.types.is_map(type_) else array.values
    places = parents[_places(values[int(offsets[0]) : int(offsets[-1])])]
    return places[array.is_valid().to_numpy(zero_copy_only=False)[places]]


def _indexes(mask: pa.BooleanArray) -> Any:
    return pc.indices_nonzero(pc.fill_null(mask, False)).to_numpy().astype(np.int64)
