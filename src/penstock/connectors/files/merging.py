"""Merging of small files into larger ones."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, cast

import pyarrow as pa

from penstock.connectors.files.compression import compressed_stream
from penstock.connectors.files.decompression import DecompressedStream
from penstock.connectors.files.staging import Part, StagingArea, group_parts
from penstock.sdk import FileFormat, Read

CHUNK_BYTES = 1 << 20


def select_due_parts(
    parts: Sequence[Part], size: int | None, interval: float | None, now: float
) -> tuple[list[list[Part]], list[Part]]:
    """Returns the groups of parts to publish as one file each, and the parts that stay staged."""
    due: list[list[Part]] = []
    staged: list[Part] = []
    for group in group_parts(parts):
        chunk: list[Part] = []
        for part in group:
            if size is not None and part.bytes >= size:
                due.append([part])
                continue
            chunk.append(part)
            if size is not None and sum(member.bytes for member in chunk) >= size:
                due.append(chunk)
                chunk = []
        if chunk and interval is not None and now - chunk[0].created >= interval:
            due.append(chunk)
        else:
            staged += chunk
    return due, staged


class Merger:
    """Merges hidden files of a staging area with this suffix.

    Files with another suffix, written before a change of format or compression, stay as they are.
    """

    def __init__(
        self, area: StagingArea, file_format: FileFormat[Any], codec: str | None, suffix: str
    ) -> None:
        self.area = area
        self.format = file_format
        self.codec = codec
        self.suffix = suffix

    def merge(
        self, batch: int, groups: Sequence[Sequence[Part]], prefix: str
    ) -> list[tuple[str, str]]:
        """Merges each group and returns the hidden files with their published paths."""
        moves = []
        for group in groups:
            mergeable = len(group) > 1 and group[0].suffix == self.suffix
            merged = self._merge(batch, group) if mergeable else None
            if merged is not None:
                moves.append((merged, group[0].published_path(prefix)))
            else:
                moves += [(part.temp, part.published_path(prefix)) for part in group]
        return moves

    def _merge(self, batch: int, group: Sequence[Part]) -> str | None:
        """Returns the hidden file of all parts; None if they cannot be merged losslessly."""
        temp = self.area.temp(max(batch, 0), f"merged-{uuid.uuid4().hex}")
        storage = self.area.storage
        file = storage.create(self.area.path(temp))
        complete = (
            self._concatenate(file, group)
            if self.format.concatenable
            else self._rewrite(file, group)
        )
        storage.close_durably(file)
        return temp if complete else None

    def _concatenate(self, file: BinaryIO, group: Sequence[Part]) -> bool:
        for part in group:
            with self.area.storage.open(self.area.path(part.temp)) as source:
                while piece := source.read(CHUNK_BYTES):
                    file.write(piece)
        return True

    def _rewrite(self, file: BinaryIO, group: Sequence[Part]) -> bool:
        reader, schema = self.format.for_merging(decode_schema(group[0].schema))
        stream = compressed_stream(file, self.codec)
        writer = self.format.file_writer(stream, schema)
        count = 0
        for part in group:
            read = Read()
            for rows in self._rows(part, reader, schema, read):
                if writer.write(rows) is not None:
                    return False
                count += rows.num_rows
            if read.bad:
                return False
        writer.close()
        if stream is not file:
            stream.close()
        return count == sum(part.rows for part in group)

    def _rows(
        self, part: Part, reader: FileFormat[Any], schema: pa.Schema, read: Read
    ) -> Iterator[pa.RecordBatch]:
        with self.area.storage.open(self.area.path(part.temp)) as raw:
            stream = raw
            if self.codec:
                own = DecompressedStream(raw, self.codec, lines=False, max_ratio=None)
                stream = cast(BinaryIO, own)
            for rows, _ in reader.read_file(stream, schema, part.temp, read):
                yield rows


def encode_schema(schema: pa.Schema) -> str:
    """Returns a schema as base64 text, for receipts."""
    return base64.b64encode(schema.serialize()).decode()


def decode_schema(text: str) -> pa.Schema:
    """Returns the schema of a text of `encode_schema`."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
