"""One file of a journal: a header with the columns, then frames of records with checksums.

```
file    MAGIC  length:u32  crc:u32  Arrow schema          (little endian throughout)
frame   length:u32  crc:u32  first:u64  rows:u32  Arrow record batch
```

`first` is the position of a frame's first record; the checksum is zlib's CRC-32 of all that
follows it in the frame. The file's name is the position of its first record. A frame that is not
whole is the end of the file: it was being written when the machine stopped, and nobody was told
that it is safe.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

import pyarrow as pa

from penstock.core.errors import StateError

MAGIC = b"PSJRNL1\n"
SUFFIX = ".segment"
_HEADER = struct.Struct("<II")
_FRAME = struct.Struct("<IIQI")
_SUMMED = struct.Struct("<QI")
_DIGITS = 20


class Frame(NamedTuple):
    """Where a frame stands in its file, and the records in it."""

    offset: int
    length: int
    first: int
    rows: int

    @property
    def end(self) -> int:
        """The position after its last record."""
        return self.first + self.rows


@dataclass(frozen=True)
class Segment:
    """A file of the journal that begins with the record at position `first`."""

    directory: Path
    first: int

    @property
    def path(self) -> Path:
        return self.directory / f"{self.first:0{_DIGITS}d}{SUFFIX}"

    @property
    def size(self) -> int:
        """Its bytes on disk; none if it was let go in the meantime."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def create(self, schema: pa.Schema) -> IO[bytes]:
        """A new file with its header, on disk with its name."""
        columns = schema.serialize().to_pybytes()
        file = self.path.open("xb")
        file.write(MAGIC + _HEADER.pack(len(columns), zlib.crc32(columns)) + columns)
        file.flush()
        os.fsync(file.fileno())
        sync_directory(self.directory)
        return file

    def schema(self) -> pa.Schema:
        """The columns of its records. Raises StateError if it has no whole header."""
        with self.path.open("rb") as file:
            return self._schema(file)

    def _schema(self, file: IO[bytes]) -> pa.Schema:
        head = file.read(len(MAGIC) + _HEADER.size)
        if len(head) == len(MAGIC) + _HEADER.size and head.startswith(MAGIC):
            length, crc = _HEADER.unpack_from(head, len(MAGIC))
            columns = file.read(length)
            if len(columns) == length and zlib.crc32(columns) == crc:
                return pa.ipc.read_schema(pa.py_buffer(columns))
        raise StateError(f"{self.path} is not a segment of a journal", code="broken-journal")

    def frames(self, *, verify: bool = False) -> Iterator[Frame]:
        """The whole frames, in order; with `verify` up to the first whose checksum is wrong."""
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

    def whole(self) -> tuple[int, int] | None:
        """The position and the byte where its last whole frame ends; None without a header."""
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

    def read(self, start: int, end: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The records from position `start` to before `end`, each batch with its first position.

        Raises StateError where a frame that is needed is damaged.
        """
        with self.path.open("rb") as file:
            schema = self._schema(file)
            for frame in self.frames():
                if frame.end <= start:
                    continue
                if frame.first >= end:
                    return
                batch = self._batch(file, frame, schema)
                skipped, left = max(start - frame.first, 0), min(end, frame.end) - frame.first
                yield frame.first + skipped, batch.slice(skipped, left - skipped)

    def _batch(self, file: IO[bytes], frame: Frame, schema: pa.Schema) -> pa.RecordBatch:
        file.seek(frame.offset - _FRAME.size)
        _, crc, first, rows = _FRAME.unpack(file.read(_FRAME.size))
        body = file.read(frame.length)
        if _crc(first, rows, body) != crc:
            raise StateError(
                f"{self.path} is damaged at byte {frame.offset}: record {frame.first}",
                code="broken-journal",
            )
        return pa.ipc.read_record_batch(pa.py_buffer(body), schema)


def framed(batch: pa.RecordBatch, first: int) -> bytes:
    """A batch of records, the first of which has that position, as a frame."""
    body: bytes = batch.serialize().to_pybytes()
    rows = batch.num_rows
    return _FRAME.pack(len(body), _crc(first, rows, body), first, rows) + body


def segments(directory: Path) -> list[Segment]:
    """The files of a journal, in order."""
    names = sorted(path.name for path in directory.glob(f"*{SUFFIX}"))
    return [Segment(directory, int(name.removesuffix(SUFFIX))) for name in names]


def sync_directory(directory: Path) -> None:
    """Makes the names of new files durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _crc(first: int, rows: int, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(_SUMMED.pack(first, rows)))
