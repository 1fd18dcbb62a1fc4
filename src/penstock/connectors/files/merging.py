"""Small files into larger ones: which are due, and how they become one."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, cast

import pyarrow as pa

from penstock.connectors.files.compression import Inflated, deflated
from penstock.connectors.files.parts import Life, Part, grouped
from penstock.sdk import FileFormat, Read

COPIED = 1 << 20


def due(
    parts: Sequence[Part], size: int | None, interval: float | None, now: float
) -> tuple[list[list[Part]], list[Part]]:
    """Which parts become which files now, and which wait for more."""
    ready: list[list[Part]] = []
    waiting: list[Part] = []
    for group in grouped(parts):
        chunk: list[Part] = []
        for part in group:
            if size is not None and part.bytes >= size:
                ready.append([part])
                continue
            chunk.append(part)
            if size is not None and sum(each.bytes for each in chunk) >= size:
                ready.append(chunk)
                chunk = []
        if chunk and interval is not None and now - chunk[0].since >= interval:
            ready.append(chunk)
        else:
            waiting += chunk
    return ready, waiting


class Merger:
    """Makes one hidden file of several."""

    def __init__(self, life: Life, form: FileFormat[Any], codec: str | None) -> None:
        self.life = life
        self.format = form
        self.codec = codec

    def moves(
        self, batch: int, groups: Sequence[Sequence[Part]], prefix: str
    ) -> list[tuple[str, str]]:
        """Hidden files and the names under which they become visible."""
        moves = []
        for group in groups:
            merged = self._merged(batch, group) if len(group) > 1 else None
            if merged is not None:
                moves.append((merged, group[0].final(prefix)))
            else:
                moves += [(part.temp, part.final(prefix)) for part in group]
        return moves

    def _merged(self, batch: int, group: Sequence[Part]) -> str | None:
        """The file of all parts; None if they cannot become one."""
        temp = self.life.temp(max(batch, 0), f"merged-{uuid.uuid4().hex}")
        storage = self.life.storage
        file = storage.create(self.life.at(temp))
        whole = (
            self._concatenate(file, group)
            if self.format.concatenable
            else self._rewrite(file, group)
        )
        storage.seal(file)
        return temp if whole else None

    def _concatenate(self, file: BinaryIO, group: Sequence[Part]) -> bool:
        for part in group:
            with self.life.storage.open(self.life.at(part.temp)) as source:
                while piece := source.read(COPIED):
                    file.write(piece)
        return True

    def _rewrite(self, file: BinaryIO, group: Sequence[Part]) -> bool:
        schema = schema_of(group[0].schema)
        stream = deflated(file, self.codec)
        writer = self.format.file_writer(stream, schema)
        count = 0
        for part in group:
            read = Read()
            for rows in self._rows(part, schema, read):
                if writer.write(rows) is not None:
                    return False
                count += rows.num_rows
            if read.bad:
                return False
        writer.close()
        if stream is not file:
            stream.close()
        return count == sum(part.rows for part in group)

    def _rows(self, part: Part, schema: pa.Schema, read: Read) -> Iterator[pa.RecordBatch]:
        with self.life.storage.open(self.life.at(part.temp)) as raw:
            stream = cast(BinaryIO, Inflated(raw, self.codec, False)) if self.codec else raw
            for rows, _ in self.format.read_file(stream, schema, part.temp, read):
                yield rows


def schema_text(schema: pa.Schema) -> str:
    """A schema as text, for a receipt."""
    return base64.b64encode(schema.serialize()).decode()


def schema_of(text: str) -> pa.Schema:
    """The schema of `schema_text`."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
