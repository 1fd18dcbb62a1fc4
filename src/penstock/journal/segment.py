"""Segments, the files of a journal: a header with the columns, then frames with checksums.

```
file    MAGIC  length:u32  crc:u32  Arrow schema          (little endian throughout)
frame   length:u32  crc:u32  first:u64  rows:u32  Arrow record batch
```

`first` is the position of the first record of a frame. The checksum is zlib's CRC-32 of the rest of
the frame. The name of a file is the position of its first record. An incomplete frame is the end of
the file: its write was interrupted and not acknowledged.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import IO, NamedTuple

import pyarrow as pa

from penstock.core.errors import StateError
from penstock.core.files.durable import rename_durably
from penstock.core.files.private_files import open_private
from penstock.journal.chunks import Chunk, chunk_head

MAGIC = b"PSJRNL1\n"
SUFFIX = ".segment"
_HEADER = struct.Struct("<II")
_FRAME = struct.Struct("<IIQI")
_SUMMED = struct.Struct("<QI")
_DIGITS = 20
CORRUPT_HINT = "Restore the directory of the state from a backup, or start again with --fresh."
GROUP_BYTES = 4 << 20
"""The maximum size of frames that are one chunk."""


class Frame(NamedTuple):
    """A frame: its offset and length in the file, and the positions of its records."""

    offset: int
    length: int
    first: int
    rows: int

    @property
    def end(self) -> int:
        """The position after the last record."""
        return self.first + self.rows


@dataclass(frozen=True)
class Segment:
    """A file of the journal whose first record is at position `first`."""

    directory: Path
    first: int

    @property
    def path(self) -> Path:
        return self.directory / f"{self.first:0{_DIGITS}d}{SUFFIX}"

    @property
    def size(self) -> int:
        """The size in bytes; 0 if the segment was removed."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def create(self, schema: pa.Schema) -> IO[bytes]:
        """Creates the file with its header, and makes both durable."""
        file = open_private(self.path, "xb")
        file.write(_encode_header(schema))
        file.flush()
        os.fsync(file.fileno())
        sync_directory(self.directory)
        return file

    def write_record(self, record: pa.RecordBatch) -> None:
        """Creates the file with one record, durably."""
        incomplete = self.path.with_suffix(".incomplete")
        with open_private(incomplete, "wb") as file:
            file.write(_encode_header(record.schema) + encode_frame(record, self.first))
        rename_durably(incomplete, self.path)

    def schema(self) -> pa.Schema:
        """Returns the columns. Raises StateError if the header is incomplete."""
        with self.path.open("rb") as file:
            return self._schema(file)

    def _schema(self, file: IO[bytes]) -> pa.Schema:
        head = file.read(len(MAGIC) + _HEADER.size)
        if len(head) == len(MAGIC) + _HEADER.size and head.startswith(MAGIC):
            length, crc = _HEADER.unpack_from(head, len(MAGIC))
            columns = file.read(length)
            if len(columns) == length and zlib.crc32(columns) == crc:
                return pa.ipc.read_schema(pa.py_buffer(columns))
        raise StateError(
            f"{self.path} is not a segment of a journal",
            code="corrupt-journal",
            hint=CORRUPT_HINT,
        )

    def frames(self, *, verify: bool = False) -> Iterator[Frame]:
        """Yields the complete frames; `verify` stops at the first invalid checksum."""
        with self.path.open("rb") as file:
            self._schema(file)
            size, expected = os.fstat(file.fileno()).st_size, self.first
            while len(head := file.read(_FRAME.size)) == _FRAME.size:
                length, crc, first, rows = _FRAME.unpack(head)
                offset = file.tell()
                if first != expected or offset + length > size:
                    return
                if not verify:
                    file.seek(length, os.SEEK_CUR)
                elif _crc(first, rows, file.read(length)) != crc:
                    return
                yield Frame(offset, length, first, rows)
                expected = first + rows

    def complete_end(self) -> tuple[int, int] | None:
        """Returns the position and byte after the last complete frame; None without a header."""
        try:
            with self.path.open("rb") as file:
                self._schema(file)
                size = file.tell()
        except StateError:
            return None
        position = self.first
        for frame in self.frames(verify=True):
            position, size = frame.end, frame.offset + frame.length
        return position, size

    def chunks(self, start: int, end: int) -> Iterator[Chunk]:
        """Yields chunks with the records from `start` to before `end`.

        A chunk has small frames together, or one large frame, and may have further records before
        and after the range. Raises StateError if a frame is corrupt.
        """
        with self.path.open("rb") as file:
            columns: bytes = self._schema(file).serialize().to_pybytes()
            for frames in _grouped(self._frames_of(start, end)):
                head = chunk_head(frames[0].first, columns)
                chunk = bytearray(len(head) + sum(frame.length for frame in frames))
                chunk[: len(head)] = head
                free = memoryview(chunk)[len(head) :]
                for frame in frames:
                    self._read_into(free, file, frame)
                    free = free[frame.length :]
                yield chunk

    def _frames_of(self, start: int, end: int) -> Iterator[Frame]:
        """Yields the frames with records from `start` to before `end`."""
        for frame in self.frames():
            if frame.first >= end:
                return
            if frame.end > start:
                yield frame

    def _read_into(self, target: memoryview, file: BufferedReader, frame: Frame) -> None:
        """Reads the record batch of a frame. Raises StateError if it is corrupt."""
        file.seek(frame.offset - _FRAME.size)
        _, crc, first, rows = _FRAME.unpack(file.read(_FRAME.size))
        body = target[: frame.length]
        if file.readinto(body) != frame.length or _crc(first, rows, body) != crc:
            raise StateError(
                f"{self.path} is corrupt at byte {frame.offset}: record {frame.first}",
                code="corrupt-journal",
                hint=CORRUPT_HINT,
            )


def _grouped(frames: Iterable[Frame]) -> Iterator[list[Frame]]:
    """Yields consecutive frames of at most `GROUP_BYTES` together, or one larger frame."""
    group: list[Frame] = []
    size = 0
    for frame in frames:
        if group and size + frame.length > GROUP_BYTES:
            yield group
            group, size = [], 0
        group.append(frame)
        size += frame.length
    if group:
        yield group


def _encode_header(schema: pa.Schema) -> bytes:
    columns: bytes = schema.serialize().to_pybytes()
    return MAGIC + _HEADER.pack(len(columns), zlib.crc32(columns)) + columns


def encode_frame(batch: pa.RecordBatch, first: int) -> bytes:
    """Returns a batch as a frame; `first` is the position of its first record."""
    body: bytes = batch.serialize().to_pybytes()
    rows = batch.num_rows
    return _FRAME.pack(len(body), _crc(first, rows, body), first, rows) + body


def list_segments(directory: Path) -> list[Segment]:
    """Returns the segments of a journal in order."""
    names = sorted(path.name for path in directory.glob(f"*{SUFFIX}"))
    return [Segment(directory, int(name.removesuffix(SUFFIX))) for name in names]


def sync_directory(directory: Path) -> None:
    """Makes the entries of a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _crc(first: int, rows: int, body: bytes | memoryview) -> int:
    return zlib.crc32(body, zlib.crc32(_SUMMED.pack(first, rows)))
