"""Lines of a byte stream, in blocks."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import Any, BinaryIO, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import DecodeError
from penstock.core.units import size_text
from penstock.sdk.format import FileWriter, Format
from penstock.sdk.kit.arrays import joined
from penstock.sdk.record import Encoded, Records

BLOCK = 1 << 20
LONGEST = 64 << 20


Framing = Literal["none", "lines"]
"""What a payload holds: one record, or one on each of its lines, without those that are blank."""


class Lines(NamedTuple):
    """Lines without their ends, and the number of each in its file, from 1.

    `too_long` are the numbers of lines of more than the allowed length, with their beginnings.
    """

    texts: pa.BinaryArray
    numbers: npt.NDArray[np.int64]
    too_long: list[tuple[int, bytes]]


def records_of(payloads: pa.BinaryArray) -> Records:
    """The lines of payloads that are not blank, without their ends."""
    lines = pc.split_pattern(payloads, "\n")
    texts = pc.replace_substring_regex(lines.flatten(), r"\r$", "")
    index = pc.list_parent_indices(lines).cast(pa.int64())
    some = pc.match_substring_regex(texts, r"[^\s]")
    texts, index = texts.filter(some), index.filter(some)
    if payloads.null_count:
        absent = np.flatnonzero(np.asarray(payloads.is_null()))
        texts = pa.concat_arrays([texts, pa.nulls(len(absent), texts.type)])
        index = pa.concat_arrays([index, pa.array(absent, pa.int64())])
        order = pa.array(np.argsort(index, kind="stable"))
        texts, index = texts.take(order), index.take(order)
    return Records(texts, index)


def split(block: bytes) -> pa.BinaryArray:
    """The lines of a block, each of which ends with a newline, without it."""
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == 10)
    offsets = np.zeros(len(ends) + 1, np.int32)
    offsets[1:] = ends - np.arange(len(ends))
    text = block.replace(b"\n", b"")
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    )


def read_lines(
    file: BinaryIO, *, block: int = BLOCK, longest: int = LONGEST, blank: bool = False
) -> Iterator[Lines]:
    """The lines of a file in blocks of about `block` bytes; `\\n` and `\\r\\n` end a line.

    Empty lines are left out unless `blank`. A line of more than `longest` bytes is not kept in
    memory. A byte order mark at the beginning is dropped.
    """
    number = 1
    for piece, whole in _pieces(file, block, longest):
        if not whole:
            yield Lines(pa.array([], pa.binary()), np.empty(0, np.int64), [(number, piece)])
            number += 1
            continue
        texts = split(piece.replace(b"\r\n", b"\n"))
        numbers = np.arange(number, number + len(texts), dtype=np.int64)
        number += len(texts)
        if not blank:
            texts, numbers = _not_empty(texts, numbers)
        yield Lines(texts, numbers, [])


def _not_empty(
    texts: pa.BinaryArray, numbers: npt.NDArray[np.int64]
) -> tuple[pa.BinaryArray, npt.NDArray[np.int64]]:
    _, places, data = texts.buffers()
    offsets = np.frombuffer(places, np.int32)[: len(texts) + 1]
    keep = np.diff(offsets) > 0
    if keep.all():
        return texts, numbers
    kept = np.concatenate([offsets[:1], offsets[1:][keep]]).astype(np.int32)
    buffers = [None, pa.py_buffer(kept), data]
    return pa.BinaryArray.from_buffers(pa.binary(), len(kept) - 1, buffers), numbers[keep]


def _pieces(file: BinaryIO, block: int, longest: int) -> Iterator[tuple[bytes, bool]]:
    """Whole lines, each with its newline; or the beginning of one line that is too long."""
    held: list[bytes] = []
    size, first, skipping = 0, True, False
    while chunk := file.read(block):
        if first:
            chunk, first = chunk.removeprefix(b"\xef\xbb\xbf"), False
        if skipping:
            end = chunk.find(b"\n")
            if end < 0:
                continue
            chunk, skipping = chunk[end + 1 :], False
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield b"".join(held) + chunk[:cut], True
            held, size, chunk = [], 0, chunk[cut:]
        if chunk:
            held.append(chunk)
            size += len(chunk)
        if size > longest:
            yield held[0][:1000], False
            held, size, skipping = [], 0, True
    if held:
        yield b"".join(held) + b"\n", True


def too_long_error(longest: int = LONGEST) -> DecodeError:
    """What is wrong with a line of more than `longest` bytes."""
    return DecodeError(f"the line is longer than {size_text(longest)}", code="too-long")


class Recoded:
    """A byte stream in another encoding, as UTF-8. What cannot be decoded stays invalid."""

    def __init__(self, file: BinaryIO, encoding: str) -> None:
        self.file = file
        self.decoder = codecs.getincrementaldecoder(encoding)(errors="surrogateescape")

    def read(self, size: int) -> bytes:
        """At least one byte, unless the file has ended."""
        while chunk := self.file.read(size):
            text = self.decoder.decode(chunk)
            if text:
                return text.encode(errors="surrogateescape")
        return self.decoder.decode(b"", final=True).encode(errors="surrogateescape")


class LineWriter(FileWriter):
    """Writes each row's payload as a line."""

    def __init__(self, file: BinaryIO, format_: Format[Any]) -> None:
        self.file = file
        self.format = format_

    def write(self, rows: pa.RecordBatch) -> Encoded | None:
        encoded = self.format.encode(rows)
        self.file.write(joined(encoded.payloads))
        return encoded if encoded.failures else None

    def close(self) -> None:
        pass
