"""Values of rows as values of data files: UUIDs, times and bytes of a fixed length."""

from __future__ import annotations

import re
import uuid
from datetime import time

import pyarrow as pa

from penstock.sdk.columns.conversion import cast

_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)?")


def to_file_values(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Converts values to the type of a data file. Raises ArrowInvalid."""
    if array.type == type_:
        return array
    if isinstance(type_, pa.UuidType):
        values = array.storage if isinstance(array.type, pa.UuidType) else _uuids(array)
        return pa.ExtensionArray.from_storage(type_, values)
    if pa.types.is_time64(type_) and pa.types.is_string(array.type):
        return pa.array([_time(text) for text in array.to_pylist()], type_)
    if pa.types.is_fixed_size_binary(type_):
        return array.cast(type_)
    if pa.types.is_timestamp(type_) and type_.unit == "ns":
        return array.cast(type_)
    return cast(array, type_)


def _uuids(array: pa.Array) -> pa.Array:
    """Returns the bytes of texts of UUIDs."""
    if pa.types.is_fixed_size_binary(array.type) or pa.types.is_binary(array.type):
        return array.cast(pa.binary(16))
    try:
        found = [None if text is None else uuid.UUID(text).bytes for text in array.to_pylist()]
    except ValueError as error:
        raise pa.ArrowInvalid("not a UUID") from error
    return pa.array(found, pa.binary(16))


def _time(text: str | None) -> time | None:
    """Returns a time of a day with at most microseconds."""
    if text is None:
        return None
    if _TIME.fullmatch(text) is None:
        raise pa.ArrowInvalid("not a time")
    return time.fromisoformat(text)
