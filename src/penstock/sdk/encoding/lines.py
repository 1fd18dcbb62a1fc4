"""Lines of a byte stream, in blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import DecodeError
from penstock.core.units import size_text
from penstock.sdk.columns.binary_arrays import join_lines
from penstock.sdk.format import FileWriter, Format
from penstock.sdk.record import Encoded, Records

BLOCK = 1 << 20
MAX_LENGTH = 64 << 20
LINE_START = 1000
"""The number of bytes of a too long line that are kept."""
_SAMPLE_SIZE = 16 << 20


Framing = Literal["none", "lines"]
"""The content of a payload: one record, or one on each line that is not blank."""


class Lines(NamedTuple):
    """Lines without line ends, and the number of each line in its file, from 1.

    `too_long` holds the number and the start of each line that exceeds the maximum length.
    """

    texts: pa.BinaryArray
    numbers: npt.NDArray[np.int64]
    too_long: list[tuple[int, bytes]]


def split_payloads(payloads: pa.BinaryArray) -> Records:
    """Splits payloads into their lines, without line ends and blank lines."""
    lines = pc.split_pattern(payloads, "\n")
    texts = pc.replace_substring_regex(lines.flatten(), r"\r$", "")
    index = pc.list_parent_indices(lines).cast(pa.int64())
    nonblank = pc.match_substring_regex(texts, r"[^\s]")
    texts, index = texts.filter(nonblank), index.filter(nonblank)
    if payloads.null_count:
        absent = np.flatnonzero(np.asarray(payloads.is_null()))
        texts = pa.concat_arrays([texts, pa.nulls(len(absent), texts.type)])
        index = pa.concat_arrays([index, pa.array(absent, pa.int64())])
        order = pa.array(np.argsort(index, kind="stable"))
        texts, index = texts.take(order), index.take(order)
    return Records(texts, index)


def sample(blocks: Iterable[pa.BinaryArray], count: int) -> pa.BinaryArray:
    """Returns the first `count` texts of blocks, or less if they exceed `_SAMPLE_SIZE` bytes."""
    texts: list[pa.BinaryArray] = []
    rows = size = 0
    for block in blocks:
        texts.append(block.slice(0, count - rows))
        rows += len(texts[-1])
        size += block.nbytes
        if rows == count or size > _SAMPLE_SIZE:
            break
    return pa.concat_arrays(texts) if texts else pa.array([], pa.binary())


def split_lines(block: bytes) -> pa.BinaryArray:
    """Splits a block of complete lines. Every line ends with a newline, which is removed."""
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == 10)
    offsets = np.zeros(len(ends) + 1, np.int32)
    offsets[1:] = ends - np.arange(len(ends))
    text = block.replace(b"\n", b"")
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    )


def read_lines(
    file: BinaryIO, *, block: int = BLOCK, max_length: int = MAX_LENGTH, blank: bool = False
) -> Iterator[Lines]:
    """Yields the lines of a file in blocks of about `block` bytes. `\\n` and `\\r\\n` end a line.

    Skips empty lines unless `blank` is set, and a leading byte order mark. A line longer than
    `max_length` bytes is not kept in memory.
    """
    number = 1
    for text, complete in read_blocks(file, block, max_length):
        if not complete:
            yield Lines(pa.array([], pa.binary()), np.empty(0, np.int64), [(number, text)])
            number += 1
            continue
        texts = split_lines(text.replace(b"\r\n", b"\n"))
        numbers = np.arange(number, number + len(texts), dtype=np.int64)
        number += len(texts)
        if not blank:
            texts, numbers = _remove_empty(texts, numbers)
        yield Lines(texts, numbers, [])


def _remove_empty(
    texts: pa.BinaryArray, numbers: npt.NDArray[np.int64]
) -> tuple[pa.BinaryArray, npt.NDArray[np.int64]]:
    _, offset_buffer, data = texts.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32)[: len(texts) + 1]
    keep = np.diff(offsets) > 0
    if keep.all():
        return texts, numbers
    new_offsets = np.concatenate([offsets[:1], offsets[1:][keep]]).astype(np.int32)
    buffers = [None, pa.py_buffer(new_offsets), data]
    return pa.BinaryArray.from_buffers(pa.binary(), len(new_offsets) - 1, buffers), numbers[keep]


def read_blocks(
    file: BinaryIO, block: int, max_length: int, bare_cr: bool = False
) -> Iterator[tuple[bytes, bool]]:
    """Yields blocks of complete lines with True, and the start of each too long line with False.

    With `bare_cr` a line may also end with `\\r` alone.
    """
    pending: list[bytes] = []
    size, first, skipping = 0, True, False
    chunks = _WholeLineEnds(file) if bare_cr else file
    while chunk := chunks.read(block):
        if first:
            chunk, first = chunk.removeprefix(b"\xef\xbb\xbf"), False
        if skipping:
            end = _first_line_end(chunk, bare_cr)
            if not end:
                continue
            chunk, skipping = chunk[end:], False
        cut = max(chunk.rfind(b"\n"), chunk.rfind(b"\r") if bare_cr else -1) + 1
        if cut:
            yield b"".join(pending) + chunk[:cut], True
            pending, size, chunk = [], 0, chunk[cut:]
        if chunk:
            pending.append(chunk)
            size += len(chunk)
        if size > max_length:
            yield b"".join(pending)[:LINE_START], False
            pending, size, skipping = [], 0, True
    if pending:
        yield b"".join(pending) + b"\n", True


def _first_line_end(chunk: bytes, bare_cr: bool) -> int:
    """Returns the offset after the first line end; 0 without one."""
    line_feed = chunk.find(b"\n") + 1
    carriage_return = chunk.find(b"\r") + 1 if bare_cr else 0
    if not carriage_return or line_feed == carriage_return + 1:
        return line_feed
    return min(line_feed, carriage_return) if line_feed else carriage_return


class _WholeLineEnds:
    """A byte stream in chunks that do not end between `\\r` and `\\n`."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._next = b""

    def read(self, size: int) -> bytes:
        chunk = self._next + self._file.read(size)
        self._next = self._file.read(1) if chunk.endswith(b"\r") else b""
        if self._next == b"\n":
            chunk, self._next = chunk + b"\n", b""
        return chunk


def too_long_error(max_length: int = MAX_LENGTH) -> DecodeError:
    """Returns the error of a line longer than `max_length` bytes."""
    return DecodeError(f"the line is longer than {size_text(max_length)}", code="too-large")


class LineWriter(FileWriter):
    """A writer of each row's payload as a line."""

    def __init__(self, file: BinaryIO, format_: Format[Any]) -> None:
        self.file = file
        self.format = format_

    def write(self, rows: pa.RecordBatch) -> Encoded | None:
        encoded = self.format.encode(rows)
        self.file.write(join_lines(encoded.payloads))
        return encoded if encoded.failures else None

    def close(self) -> None:
        pass
