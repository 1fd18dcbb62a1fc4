"""Formats: conversion between payloads and Arrow."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import BinaryIO, ClassVar

import numpy as np
import pyarrow as pa

from penstock.core.errors import PlanError
from penstock.sdk.component import C, Component
from penstock.sdk.operations import OPERATION_COLUMN
from penstock.sdk.record import Decoded, DecodeFailure, Encoded, Read, Records, Rows

START_BYTES = 4096
"""The size of the start of a file that shows its encoding and its layout."""


class Format(Component[C]):
    """A decoder and an encoder, one payload per record unless `records` is overridden.

    A payload or row that cannot be converted is a `Failure` (DecodeError, EncodeError), not an
    exception, and does not affect other records.
    """

    messages: ClassVar[bool] = True
    """Whether a record can be a single payload; otherwise the format is for files only."""

    carries_operations: ClassVar[bool] = False
    """Whether a payload holds the operation of its row, as a change event does.

    Decoded and encoded rows then have the column `operation_column`. Without the column encoded
    rows are inserts. A payload may be decoded to two rows: before and after an update.
    """

    operation_column: str = OPERATION_COLUMN
    """The operation column of the rows, with `carries_operations`. Set by the planner."""

    primary_key: tuple[str, ...] = ()
    """The primary key of the rows, with `carries_operations`. Set by the planner for a sink."""

    complete_changes: bool = False
    """Whether each update of encoded rows has its row before, with `carries_operations`. An update
    without it is then a new row. Set by the planner for a sink."""

    @property
    def has_complete_changes(self) -> bool:
        """Whether each decoded update and delete has all columns of the row before."""
        return False

    def records(self, payloads: pa.BinaryArray) -> Records:
        """Splits payloads into records. A null payload is one null record."""
        return Records(payloads, None)

    def rows(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Rows:
        """Decodes all records of the payloads into rows of exactly `schema`."""
        texts, payload_indexes = self.records(payloads)
        rows, indexes, failures = self.decode(texts, schema)
        decode_failures = []
        for index, error in failures:
            text = texts[index].as_py()
            if payload_indexes is None:
                decode_failures.append(DecodeFailure(index, text, None, error))
                continue
            payload = payload_indexes[index].as_py()
            part = index - int(np.searchsorted(payload_indexes, payload))
            decode_failures.append(DecodeFailure(payload, text, part, error))
        if payload_indexes is not None:
            indexes = payload_indexes if indexes is None else payload_indexes.take(indexes)
        return Rows(rows, indexes, decode_failures)

    def decode(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        """Decodes records into rows of exactly `schema`. Raises PlanError without `messages`."""
        raise self._for_files()

    def encode(self, rows: pa.RecordBatch) -> Encoded:
        """Encodes each row as a payload. Raises PlanError without `messages`."""
        raise self._for_files()

    def _for_files(self) -> PlanError:
        name = type(self).__name__.lower()
        return PlanError(f"the format {name} is for files, not for messages", code="no-messages")

    def check_messages(self) -> None:
        """Checks that the options are those of payloads, not of files. Raises PlanError.

        Called for a node of messages before a run.
        """

    def check_columns(self, columns: pa.Schema) -> None:
        """Checks that payloads can be decoded as rows of these columns. Raises PlanError.

        Called for the declared columns of a source before a run.
        """

    def prepare(self, columns: pa.Schema) -> None:
        """Prepares for encoding rows of these columns. Called on the driver once per run."""

    def offline(self) -> Format[C]:
        """Returns a format for trials that encodes without external systems."""
        return self

    def infer_schema(self, payloads: pa.BinaryArray) -> pa.Schema | None:
        """Infers the schema of a sample; None if the schema must be declared."""
        return None

    def declared_schema(self) -> pa.Schema | None:
        """Returns the schema that the options declare (a schema file), or None."""
        return None


class FileWriter(ABC):
    """A writer of rows into one open file."""

    @abstractmethod
    def write(self, rows: pa.RecordBatch) -> Encoded | None:
        """Appends rows. Returns an `Encoded` with the failures of rows left out, or None."""

    @abstractmethod
    def close(self) -> None:
        """Completes the content of the file. The file object stays open."""


class FileFormat(Format[C]):
    """A format that reads and writes whole files: framing, headers, footers."""

    extension: ClassVar[str] = ""
    position: ClassVar[str] = "row"
    """The unit of a record's position in a file, from 1: `line`, `row` or `file`."""
    concatenable: ClassVar[bool] = False
    """Whether the concatenation of two files is a file of the rows of both."""
    lines: ClassVar[bool] = False
    """Whether records are lines."""

    @abstractmethod
    def read_file(
        self, file: BinaryIO, schema: pa.Schema, origin: str, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        """Yields rows of exactly `schema` with their positions, block by block.

        `file` is uncompressed, and seekable only with `needs_seek`. Passes bad records to
        `read.reject` with their position.
        """

    def is_divisible(self, start: bytes) -> bool:
        """Returns whether a file can be read from any byte after a `\\n`.

        `start` holds the first `START_BYTES` of the file, or less of a shorter file.
        """
        return self.lines

    def without_start(self) -> FileFormat[C]:
        """Returns a format that reads such a file from a byte other than its first."""
        return self

    @property
    def spans_lines(self) -> bool:
        """Whether a record of a file with `lines` may have several lines."""
        return False

    def last_record_start(self, lines: bytes) -> int | None:
        """Returns the offset of the last line that starts a record, with `spans_lines`, or None.

        `lines` are complete lines of a divisible file.
        """
        return lines.rfind(b"\n", 0, -1) + 1 if lines else None

    def inside_record(self) -> FileFormat[C]:
        """Returns a format that reads a file with `spans_lines` from within a record.

        The remaining lines of this record are skipped.
        """
        return self

    needs_seek: ClassVar[bool] = False
    native_decoder: ClassVar[bool] = False
    """Whether a damaged file can crash the decoder, and with it the process."""

    @property
    def needs_header(self) -> bool:
        """Whether `read_record` requires the header of the record's file."""
        return False

    def header(self, file: BinaryIO) -> bytes:
        """Returns the header of a file for `read_record`, such as a header line."""
        return b""

    def check_file(self, file: BinaryIO, schema: pa.Schema, origin: str) -> None:
        """Checks the header of a file. Raises Permanent if it does not have these columns."""

    def read_record(
        self, payload: bytes, header: bytes, schema: pa.Schema, origin: str, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        """Yields the rows of a single rejected record, as `read_file` does for a file."""
        return self.read_file(io.BytesIO(header + payload), schema, origin, read)

    @abstractmethod
    def file_writer(self, file: BinaryIO, schema: pa.Schema) -> FileWriter:
        """Returns a writer of rows of `schema` into `file`. Writes sequentially."""

    def for_merging(self, schema: pa.Schema) -> tuple[FileFormat[C], pa.Schema]:
        """Returns a format that reads files of `file_writer(file, schema)`, and their columns."""
        return self, schema

    @abstractmethod
    def infer_file(self, file: BinaryIO) -> pa.Schema | None:
        """Infers the schema of a file from its header or a sample of its rows.

        None for a file without rows and for a damaged file. Raises PlanError for columns of an
        unsupported type.
        """
