"""The rows of many messages of pgoutput as columns of text, without an object for each row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.connectors.postgres.changes.messages import NULL, UNSENT
from penstock.sdk.operations import Operation

Places = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
_OPERATIONS = {
    ord("I"): Operation.INSERT,
    ord("U"): Operation.UPDATE,
    ord("D"): Operation.DELETE,
}
_ROW = 6
"""The place of a row after the operation, the number of the table, and the kind of row."""
_LENGTH = 4
"""The bytes of the length of a value."""


def columns_of(
    messages: Sequence[bytes], start: int, names: Sequence[str]
) -> tuple[pa.StringArray, pa.RecordBatch] | None:
    """Returns the operations and the rows of inserts, updates and deletes with one row each.

    The messages begin at `start`. Returns None if the server has not sent a value.
    """
    data = np.frombuffer(b"".join([*messages, b"\0" * (1 + _LENGTH)]), np.uint8)
    lengths = np.fromiter(map(len, messages), np.int64, len(messages))
    first = np.cumsum(lengths) - lengths + start
    counts = _number(data, first + _ROW, 2)
    assert (counts == len(names)).all(), "the messages have other columns than their table"
    place, columns = first + _ROW + 2, []
    for _ in names:
        kinds = data[place]
        if (kinds == UNSENT).any():
            return None
        is_null = kinds == NULL
        begin = np.where(is_null, place + 1, place + 1 + _LENGTH)
        place = begin + np.where(is_null, 0, _number(data, place + 1, _LENGTH))
        columns.append(_texts(data, begin, place, is_null))
    return _operations(data[first]), pa.RecordBatch.from_arrays(columns, list(names))


def _number(data: Bytes, places: Places, length: int) -> Places:
    """Returns the numbers of `length` bytes at places, the most significant byte first."""
    number = np.zeros(len(places), np.int64)
    for offset in range(length):
        number = number << 8 | data[places + offset]
    return number


def _texts(
    data: Bytes, begin: Places, end: Places, is_null: npt.NDArray[np.bool_]
) -> pa.StringArray:
    """Returns the texts from `begin` to `end`, which follow one another.

    The values and the bytes between them are an array over the data. Its even items are taken.
    """
    offsets = np.column_stack((begin, end)).reshape(-1).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    values = pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)
    taken = pa.array(np.arange(0, len(offsets), 2), mask=is_null)
    return values.take(taken).cast(pa.string())


def _operations(codes: Bytes) -> pa.StringArray:
    known = np.array(sorted(_OPERATIONS), np.uint8)
    texts = pa.array([_OPERATIONS[int(code)].value for code in known], pa.string())
    return texts.take(pa.array(np.searchsorted(known, codes)))
