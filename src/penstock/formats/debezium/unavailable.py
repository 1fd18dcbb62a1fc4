"""Values that PostgreSQL did not send, because an update left them unchanged (TOAST)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import DecodeError
from penstock.sdk import Failure
from penstock.sdk.columns.type_names import is_list
from penstock.sdk.null_text import NullText

PLACEHOLDER = "__debezium_unavailable_value"
"""The value of Debezium for such values: a text, its bytes, or an array or a map of these."""
Mask = npt.NDArray[np.bool_]


Unavailable = Annotated[Literal["reject", "null"], NullText()]
"""The option for a value that is not in the row before either: a bad record, or null."""


def resolve_unavailable(
    events: pa.RecordBatch, action: Unavailable
) -> tuple[pa.RecordBatch, list[Failure]]:
    """Returns events without placeholders, and the failures of `reject`.

    A placeholder in `after` becomes the value of `before`, or null. One in `before` becomes null.
    """
    before, after = events.column("before"), events.column("after")
    failures: dict[int, DecodeError] = {}
    columns: dict[str, tuple[pa.Array, pa.Array]] = {}
    for number, field in enumerate(after.type):
        old, new = pc.struct_field(before, [number]), pc.struct_field(after, [number])
        old_mask, mask = _mask(old), _mask(new)
        if not (mask | old_mask).any():
            continue
        known = np.asarray(old.is_valid()) & ~old_mask
        columns[field.name] = _chosen(old, None, old_mask, known), _chosen(new, old, mask, known)
        for index in np.flatnonzero(mask & ~known).tolist():
            failures.setdefault(index, _error(field.name))
    if not columns:
        return events, []
    for place, name in enumerate(("before", "after")):
        image = events.column(name)
        arrays = [
            columns[field.name][place] if field.name in columns else pc.struct_field(image, [index])
            for index, field in enumerate(image.type)
        ]
        rebuilt = pa.StructArray.from_arrays(arrays, fields=list(image.type), mask=image.is_null())
        index = events.schema.get_field_index(name)
        events = events.set_column(index, events.schema.field(index), rebuilt)
    rejected = failures.items() if action == "reject" else ()
    return events, [Failure(index, error) for index, error in rejected]


def _chosen(values: pa.Array, others: pa.Array | None, mask: Mask, known: Mask) -> pa.Array:
    """Returns values, with other ones or null where the mask is set."""
    count = len(values)
    numbers = np.arange(count)
    replaced = numbers + count if others is not None else np.full(count, -1)
    index = np.where(mask, np.where(known & (replaced >= 0), replaced, -1), numbers)
    every = values if others is None else pa.concat_arrays([values, others])
    return every.take(pa.array(index, mask=index < 0))


def _mask(values: pa.Array) -> Mask:
    """Returns which values are placeholders."""
    type_ = values.type
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        equal = pc.equal(values, pa.scalar(PLACEHOLDER).cast(type_))
        return np.asarray(pc.fill_null(equal, False), bool)
    placeholder = _placeholder_of(type_)
    if placeholder is None:
        return np.zeros(len(values), bool)
    return np.array([value == placeholder for value in values.to_pylist()], bool)


def _placeholder_of(type_: pa.DataType) -> Any:
    """Returns the placeholder of an array or a map; None for other types."""
    content = PLACEHOLDER.encode()
    if pa.types.is_map(type_):
        return [(PLACEHOLDER, PLACEHOLDER)]
    if not is_list(type_):
        return None
    if pa.types.is_integer(type_.value_type) or pa.types.is_floating(type_.value_type):
        return list(content)
    return [content if pa.types.is_binary(type_.value_type) else PLACEHOLDER]


def _error(column: str) -> DecodeError:
    return DecodeError(
        f'the database did not send the unchanged value of column "{column}"',
        code="unavailable-value",
        hint="Set REPLICA IDENTITY FULL of the table, or unavailable: null.",
    )
