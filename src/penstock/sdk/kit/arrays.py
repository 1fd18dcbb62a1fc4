"""Arrays of texts and the bytes behind them; parts of arrays; nulls aside."""

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


def spans(payloads: pa.BinaryArray) -> tuple[Bytes, Offsets]:
    """The bytes of all payloads, which are not null, and where each begins and ends in them."""
    _, places, data = payloads.buffers()
    if places is None or not len(payloads):
        return np.empty(0, np.uint8), np.zeros(1, np.int32)
    every = np.frombuffer(places, np.int32)
    offsets = every[payloads.offset : payloads.offset + len(payloads) + 1]
    values = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return values[offsets[0] : offsets[-1]], offsets - offsets[0]


def values_of(payloads: pa.BinaryArray) -> Bytes:
    """The bytes of all payloads, one after the other."""
    return spans(payloads)[0]


def joined(texts: pa.BinaryArray) -> bytes:
    """The texts, each with a newline behind it."""
    if not len(texts):
        return b""
    everything = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
    text: bytes = pc.binary_join(everything, b"\n")[0].as_py()
    return text + b"\n"


def parts(payloads: pa.BinaryArray, rows: int, size: int) -> Iterator[tuple[int, int]]:
    """Ranges of at most `rows` payloads and about `size` bytes, and at least one payload."""
    _, offsets = spans(payloads)
    start = 0
    while start < len(payloads):
        within = int(np.searchsorted(offsets, offsets[start] + size, side="right")) - 1
        stop = min(max(within, start + 1), start + rows, len(payloads))
        yield start, stop
        start = stop


def without_nulls(payloads: pa.BinaryArray, decode: Callable[[Any], Decoded]) -> Decoded:
    """`decode` of the payloads that are not null; the others have failed."""
    if not payloads.null_count:
        return decode(payloads)
    found = decode(payloads.drop_null())
    present = np.flatnonzero(np.asarray(payloads.is_valid()))
    index = present if found.index is None else present[found.index.to_numpy()]
    empty = DecodeError("the record has no value", code="no-value")
    absent = np.flatnonzero(np.asarray(payloads.is_null()))
    failures = [Failure(int(i), empty) for i in absent]
    failures += [Failure(int(present[f.index]), f.error) for f in found.failures]
    return Decoded(found.rows, pa.array(index, pa.int64()), in_order(failures))


def in_order(failures: list[Failure]) -> list[Failure]:
    """By the index of the record."""
    return sorted(failures, key=lambda failure: failure[0])
