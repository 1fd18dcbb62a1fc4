"""Timestamps of Protocol Buffers in nanoseconds, and those beyond the range of nanoseconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_BOUNDS = pa.array([2**63 - 1, -(2**63)], pa.int64())
"""The values that ptars has for timestamps before 1677 and after 2262 in nanoseconds."""


def convert_in_range(
    convert: Callable[[pa.Array, pa.DataType], pa.Array], array: pa.Array, type_: pa.DataType
) -> pa.Array:
    """Converts an array with 1970 for timestamps beyond the range of nanoseconds."""
    if _is_nanoseconds(array.type):
        array = pc.if_else(_saturated(array), pa.scalar(0, array.type), array)
    return convert(array, type_)


def has_saturated_times(array: Any) -> bool:
    """Returns whether a timestamp within an array is beyond the range of nanoseconds."""
    type_ = array.type
    if pa.types.is_struct(type_):
        return any(has_saturated_times(array.field(index)) for index in range(type_.num_fields))
    if pa.types.is_map(type_):
        return has_saturated_times(array.items)
    if pa.types.is_list(type_):
        return has_saturated_times(array.values)
    return _is_nanoseconds(type_) and pc.any(_saturated(array)).as_py() is True


def _is_nanoseconds(type_: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type_)) and type_.unit == "ns"


def _saturated(array: pa.TimestampArray) -> pa.BooleanArray:
    return pc.is_in(array.cast(pa.int64()), _BOUNDS)
