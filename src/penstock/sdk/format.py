"""Formats: bytes to Arrow and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import BinaryIO, ClassVar

import numpy as np
import pyarrow as pa

from penstock.core.errors import PlanError
from penstock.sdk.component import C, Component
from penstock.sdk.record import Bad, Decoded, Encoded, Read, Records, Rows


class Format(Component[C]):
    """A pair of functions between payloads and rows, one payload a record (but see `records`).

    Both are total: a payload or row that cannot be converted is a `Failure` (DecodeError,
    EncodeError), never an exception, and never costs its neighbours.
    """

    messages: ClassVar[bool] = True
    """Whether a record can be a payload of its own; otherwise the format is for files only."""

    def records(self, payloads: pa.BinaryArray) -> Records:
        """The records in payloads, where one may hold several. A null stays one that is null."""
        return Records(payloads, None)

    def rows(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Rows:
        """Rows of exactly `schema` from all records in the payloads, as `records` and `decode`."""
        texts, whole = self.records(payloads)
        rows, index, failures = self.decode(texts, schema)
        if whole is None:
            return Rows(rows, index, [Bad(at, texts[at].as_py(), None, e) for at, e in failures])
        bad = []
        for at, error in failures:
            payload = whole[at].as_py()
            part = at - int(np.searchsorted(whole, payload))
            bad.append(Bad(payload, texts[at].as_py(), part, error))
        return Rows(rows, whole if index is None else whole.take(index), bad)

    def decode(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        """Rows of exactly `schema`. Raises PlanError if the format has no messages."""
        raise self._for_files()

    def encode(self, rows: pa.RecordBatch) -> Encoded:
        """One payload for each row. Raises PlanError if the format has no messages."""
        raise self._for_files()

    def _for_files(self) -> PlanError:
        name = type(self).__name__.lower()
        return PlanError(f"the format {name} is for files, not for messages", code="no-messages")

    def prepare(self, columns: pa.Schema) -> None:
        """Called on the driver before the first rows of these columns are encoded in a run."""

    def offline(self) -> Format[C]:
        """The same for a trial: it encodes as well as it can, and reaches nothing outside."""
        return self

    def infer(self, payloads: pa.BinaryArray) -> pa.Schema | None:
        """The schema of a sample; None when it cannot be told and must be declared."""
        return None

    def declared(self) -> pa.Schema | None:
        """The schema that the options give (a schema file), if they do."""
        return None


class FileWriter(ABC):
    """Writes rows into one open file."""

    @abstractmethod
    def write(self, rows: pa.RecordBatch) -> Encoded | None:
        """Appends rows; an `Encoded` whose failures name the rows left out, or None."""

    @abstractmethod
    def close(self) -> None:
        """Completes the file's content. The file object itself stays open."""


class FileFormat(Format[C]):
    """A format that also knows whole files: framing, headers, footers."""

    extension: ClassVar[str] = ""
    position: ClassVar[str] = "row"
    """What a record's position counts in a file: `line`, `row` or `file`, from 1."""
    concatenable: ClassVar[bool] = False
    """Whether two files' contents one after the other are a file of both rows."""
    lines: ClassVar[bool] = False
    """Whether records are lines, so that a growing file can be read from a byte on."""

    @abstractmethod
    def read_file(
        self, file: BinaryIO, schema: pa.Schema, origin: str, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        """Rows of exactly `schema` and the position of each, block by block.

        `file` is uncompressed and may not be seekable unless `seekable` is needed (see
        `needs_seek`). Bad records go to `read.reject` with their position.
        """

    needs_seek: ClassVar[bool] = False

    def head(self, file: BinaryIO) -> bytes:
        """What a record of a file needs before it to be read on its own, such as a header."""
        return b""

    @abstractmethod
    def file_writer(self, file: BinaryIO, schema: pa.Schema) -> FileWriter:
        """A writer of rows of `schema` into `file`, which is only ever written forward."""

    @abstractmethod
    def infer_file(self, file: BinaryIO) -> pa.Schema | None:
        """The schema of a file, from its head or a sample of its rows."""
