"""Arrays of extension types and list views as arrays of plain types."""

from __future__ import annotations

from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def storage_values(array: pa.ExtensionArray, type_: pa.DataType) -> pa.Array:
    """Returns the values of an extension type for a conversion to `type_`.

    The text of a UUID has hyphens.
    """
    if isinstance(array.type, pa.UuidType) and pa.types.is_string(type_):
        texts = [value and str(UUID(bytes=value)) for value in array.storage.to_pylist()]
        return pa.array(texts, pa.string())
    if isinstance(array.type, pa.Bool8Type):
        return pc.not_equal(array.storage, pa.scalar(0, pa.int8()))
    return array.storage


def is_list_view(type_: pa.DataType) -> bool:
    """Returns whether the type is a list view."""
    return bool(pa.types.is_list_view(type_) or pa.types.is_large_list_view(type_))


def from_list_view(array: pa.Array) -> pa.ListArray:
    """Returns the lists of an array whose lists may overlap and be in any order."""
    sizes = np.asarray(pc.fill_null(pc.list_value_length(array), 0))
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    mask = array.is_null() if array.null_count else None
    type_ = pa.list_(array.type.value_field)
    return pa.ListArray.from_arrays(pa.array(offsets), array.flatten(), type=type_, mask=mask)
