"""Binary arrays: their buffers, joined lines, ranges of limited size, nulls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import DecodeError
from penstock.sdk.record import Decoded, Failure

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int32]


def values_and_offsets(payloads: pa.BinaryArray) -> tuple[Bytes, Offsets]:
    """Returns the bytes of all payloads and the offset of each payload. No payload may be null."""
    _, offset_buffer, data = payloads.buffers()
    if offset_buffer is None or not len(payloads):
        return np.empty(0, np.uint8), np.zeros(1, np.int32)
    all_offsets = np.frombuffer(offset_buffer, np.int32)
    offsets = all_offsets[payloads.offset : payloads.offset + len(payloads) + 1]
    values = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return values[offsets[0] : offsets[-1]], offsets - offsets[0]


def concatenated_values(payloads: pa.BinaryArray) -> Bytes:
    """Returns the concatenated bytes of all payloads. No payload may be null."""
    return values_and_offsets(payloads)[0]


def join_lines(texts: pa.BinaryArray) -> bytes:
    """Returns the concatenated texts, each followed by a newline."""
    if not len(texts):
        return b""
    list_array = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
    text: bytes = pc.binary_join(list_array, b"\n")[0].as_py()
    return text + b"\n"


def split_ranges(payloads: pa.BinaryArray, rows: int, size: int) -> Iterator[tuple[int, int]]:
    """Yields ranges of 1 to `rows` payloads and about `size` bytes."""
    _, offsets = values_and_offsets(payloads)
    start = 0
    while start < len(payloads):
        fitting = int(np.searchsorted(offsets, offsets[start] + size, side="right")) - 1
        stop = min(max(fitting, start + 1), start + rows, len(payloads))
        yield start, stop
        start = stop


def decode_non_null(payloads: pa.BinaryArray, decode: Callable[[Any], Decoded]) -> Decoded:
    """Decodes the payloads that are not null. Each null is a failure with the code `no-value`."""
    if not payloads.null_count:
        return decode(payloads)
    decoded = decode(payloads.drop_null())
    valid = np.flatnonzero(np.asarray(payloads.is_valid()))
    index = valid if decoded.index is None else valid[decoded.index.to_numpy()]
    empty = DecodeError("the record has no value", code="no-value")
    nulls = np.flatnonzero(np.asarray(payloads.is_null()))
    failures = [Failure(int(index), empty) for index in nulls]
    failures += [Failure(int(valid[failure.index]), failure.error) for failure in decoded.failures]
    return Decoded(decoded.rows, pa.array(index, pa.int64()), sort_failures(failures))


def sort_failures(failures: list[Failure]) -> list[Failure]:
    """Returns failures sorted by the index of the record."""
    return sorted(failures, key=lambda failure: failure[0])
