"""Lines of CSV files and their line ends: LF, CRLF or CR."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.sdk.encoding.lines import BLOCK, MAX_LENGTH, read_blocks, split_lines

LINE_ENDS = (b"\n", b"\r\n", b"\r")
_LF, _CR = 10, 13


class Lines(NamedTuple):
    """Lines, the number of each in its file from 1, and the index of its end in `LINE_ENDS`.

    `too_long` holds the number and the start of each line that exceeds the maximum length.
    """

    texts: pa.BinaryArray
    numbers: npt.NDArray[np.int64]
    ends: npt.NDArray[np.uint8]
    too_long: list[tuple[int, bytes]]


def read_lines(
    file: BinaryIO, *, block: int = BLOCK, max_length: int = MAX_LENGTH
) -> Iterator[Lines]:
    """Yields the lines of a file in blocks. A leading byte order mark is skipped."""
    number = 1
    for text, complete in read_blocks(file, block, max_length, bare_cr=True):
        if not complete:
            none = np.empty(0, np.int64)
            yield Lines(pa.array([], pa.binary()), none, none.astype(np.uint8), [(number, text)])
            number += 1
            continue
        texts, ends = split(text)
        numbers = np.arange(number, number + len(texts), dtype=np.int64)
        number += len(texts)
        yield Lines(texts, numbers, ends, [])


def split(block: bytes) -> tuple[pa.BinaryArray, npt.NDArray[np.uint8]]:
    """Splits a block of complete lines. Returns the texts and the index of each line end."""
    if b"\r" not in block:
        texts = split_lines(block)
        return texts, np.zeros(len(texts), np.uint8)
    values = np.frombuffer(block, np.uint8)
    line_feed, carriage_return = values == _LF, values == _CR
    in_pair = carriage_return & np.append(line_feed[1:], False)
    stops = np.flatnonzero(line_feed | (carriage_return & ~in_pair))
    is_end = line_feed | carriage_return
    offsets = np.zeros(len(stops) + 1, np.int32)
    offsets[1:] = stops + 1 - np.cumsum(is_end)[stops]
    after_cr = np.append(False, in_pair)[stops]
    ends = np.where(carriage_return[stops], 2, after_cr).astype(np.uint8)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(values[~is_end].tobytes())]
    return pa.BinaryArray.from_buffers(pa.binary(), len(stops), buffers), ends
