"""The maximum size of a message. Larger messages become dead letters."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import DecodeError
from penstock.core.units import size_text
from penstock.sdk.record import Read

_HEAD_BYTES = 1024


def reject_larger(rows: pa.RecordBatch, max_size: int, read: Read) -> pa.RecordBatch:
    """Rejects the rows whose payload has more than `max_size` bytes. Returns the other rows.

    `rows` has the columns of `PAYLOAD`. The dead letters have the code `too-large`.
    """
    sizes = pc.binary_length(rows.column("payload"))
    return reject_oversized(rows, pc.if_else(pc.greater(sizes, max_size), sizes, None), read)


def reject_oversized(rows: pa.RecordBatch, sizes: pa.Array, read: Read) -> pa.RecordBatch:
    """Rejects the rows that have a size in `sizes`. Returns the rows where the size is null."""
    if sizes.null_count == len(sizes):
        return rows
    oversized = pc.is_valid(sizes)
    heads = pc.binary_slice(rows.column("payload").filter(oversized), 0, _HEAD_BYTES)
    origins, positions = (rows.column(name).filter(oversized) for name in ("origin", "position"))
    values = (column.to_pylist() for column in (heads, origins, positions, sizes.drop_null()))
    for head, origin, position, size in zip(*values, strict=True):
        error = DecodeError(
            f"the message has {size_text(size)}, more than max_message_size",
            code="too-large",
            hint="Increase max_message_size.",
        )
        read.reject(head, origin, position, error)
    return rows.filter(pc.invert(oversized))
