"""CSV: one record per payload; files with a header line."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import BinaryIO, ClassVar, cast

import numpy as np
import pyarrow as pa

from penstock.core.errors import DecodeError, EncodeError, Permanent, PlanError
from penstock.core.text import did_you_mean
from penstock.formats.csv.config import CsvConfig
from penstock.formats.csv.header import Header, match_names, named_columns
from penstock.formats.csv.lines import read_lines
from penstock.formats.csv.read import Reader
from penstock.formats.csv.records import Dialect, read_records, remove_blank
from penstock.formats.csv.records import Records as BlockRecords
from penstock.formats.csv.write import Writer
from penstock.sdk.bisect_failures import bisect_failures
from penstock.sdk.columns.binary_arrays import decode_non_null, join_lines
from penstock.sdk.columns.conform import collect_encoded, error_text
from penstock.sdk.columns.inference import (
    column_of,
    infer_number_type,
    infer_text_type,
    merge_types,
)
from penstock.sdk.columns.names import check_distinct
from penstock.sdk.columns.type_names import sql_name
from penstock.sdk.encoding.fallback import decode_with_fallback
from penstock.sdk.encoding.lines import sample, split_payloads
from penstock.sdk.encoding.transcoding import as_utf8, payloads_as_utf8
from penstock.sdk.format import FileFormat, FileWriter
from penstock.sdk.record import Decoded, Encoded, Read, Records

_SAMPLE = 1000
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)?(\.[0-9]+|(?<=[0-9]))([eE][+-]?[0-9]{1,4})?\Z")


class Csv(FileFormat[CsvConfig]):
    """Comma-separated values (RFC 4180): one record per payload; files have a header (`.csv`).

    ```yaml
    format: {type: csv, delimiter: ";", nulls: ["", NA]}
    ```

    Columns of a file are matched by the names in its header, in any order. Upper and lower case are
    equal, unless the header has the equal name; several names for a column are an error. A
    declared column that is not in the header is an error, which ends the query, unless
    `missing_columns` is null. Other columns of a file are ignored. Payloads have no header:
    their fields are the declared columns in order, or those of `columns`. A record with another
    number of fields is an error.

    An empty field is null, and `""` is an empty text (null if the column is neither STRING nor
    BINARY). Integers, DECIMAL, DOUBLE, TIMESTAMP, DATE and BINARY (base64) are read from text as in
    the format `json`. BOOLEAN is true, false, 1 or 0. White space around values other than text is
    ignored. ARRAY, MAP and STRUCT are not supported. An invalid value, or a quote that is not
    closed within 1 MB, fails only its record. The position is the number of a record's first line.
    Lines end with `\\n`, `\\r\\n` or `\\r`; inside quotes these are part of the value, unchanged.
    Blank lines are skipped, except in a file of one column, where they are empty fields. Fields are
    written with quotes if needed, and lines end with `\\n`. A row that cannot be read back with the
    same options is an error.
    """

    extension: ClassVar[str] = ".csv"
    position: ClassVar[str] = "line"

    @property
    def _dialect(self) -> Dialect:
        return Dialect(self.config.delimiter, self.config.quote, self.config.escape)

    @property
    def _writer(self) -> Writer:
        config = self.config
        return Writer(self._dialect, config.nulls, config.comment, config.timestamps)

    def records(self, payloads: pa.BinaryArray) -> Records:
        return (
            split_payloads(payloads) if self.config.framing == "lines" else Records(payloads, None)
        )

    def decode(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        names = self._names(schema)
        texts = payloads_as_utf8(payloads, self.config.encoding)
        return decode_non_null(texts, lambda present: self._decode(present, names, schema))

    def _decode(self, records: pa.BinaryArray, names: Sequence[str], schema: pa.Schema) -> Decoded:
        _check_flat(schema)
        nulls = tuple(self.config.nulls)
        reader = Reader(tuple(names), schema, self._dialect, nulls, self.config.time_form)
        return decode_with_fallback(
            records, schema, reader.read, reader.normalize, reader.read_normalized
        )

    def encode(self, rows: pa.RecordBatch) -> Encoded:
        _check_flat(rows.schema)
        if self.config.columns:
            rows = rows.select(_selected(self.config.columns, rows.schema))

        def attempt(start: int, stop: int) -> pa.BinaryArray:
            return self._writer.records(rows.slice(start, stop - start))

        return collect_encoded(bisect_failures(rows.num_rows, attempt, _unencodable))

    def read_file(
        self, file: BinaryIO, schema: pa.Schema, origin: str, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        names: Sequence[str] | None = None if self.config.header else self._names(schema)
        header: bytes | None = None
        for texts, numbers, bad in self._records(file):
            for number, text, error in bad:
                read.reject(text, origin, number, error, header=header)
            if names is None and len(rest := remove_blank(texts, numbers)[1]):
                first = int(np.searchsorted(numbers, rest[0]))
                header = texts[first].as_py()
                missing = self.config.missing_columns
                names = Header(header, self._dialect).match(schema, missing, origin)
                texts, numbers = texts.slice(first + 1), numbers[first + 1 :]
            if names is not None and len(names) > 1:
                texts, numbers = remove_blank(texts, numbers)
            if names is None or not len(texts):
                continue
            decoded = self._decode(texts, names, schema)
            for index, error in decoded.failures:
                record, number = texts[index].as_py(), int(numbers[index])
                read.reject(record, origin, number, error, header=header)
            positions = numbers if decoded[1] is None else numbers[decoded[1].to_numpy()]
            if decoded.rows.num_rows:
                yield decoded.rows, pa.array(positions)

    @property
    def needs_header(self) -> bool:
        return self.config.header

    def header(self, file: BinaryIO) -> bytes:
        for texts, numbers, _ in self._records(file):
            if len(records := remove_blank(texts, numbers)[0]):
                return bytes(records[0].as_py())
        return b""

    def check_file(self, file: BinaryIO, schema: pa.Schema, origin: str) -> None:
        header = self.header(file) if self.config.header else b""
        if header:
            Header(header, self._dialect).match(schema, self.config.missing_columns, origin)

    def read_record(
        self, payload: bytes, header: bytes, schema: pa.Schema, origin: str, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        """Yields the rows of a record. Payload and header are UTF-8, whatever the encoding."""
        decoded = Csv(self.config.model_copy(update={"encoding": "utf-8"}))
        lines = [header, payload] if self.config.header else [payload]
        try:
            yield from decoded.read_file(
                io.BytesIO(b"\n".join([*lines, b""])), schema, origin, read
            )
        except Permanent as error:
            raise DecodeError(error.message, code=error.code, hint=error.hint) from error

    def for_merging(self, schema: pa.Schema) -> tuple[FileFormat[CsvConfig], pa.Schema]:
        names = _selected(self.config.columns, schema) if self.config.columns else schema.names
        columns = pa.schema([schema.field(name) for name in names])
        return Csv(self.config.model_copy(update={"encoding": "utf-8"})), columns

    def _names(self, schema: pa.Schema) -> Sequence[str]:
        if not self.config.columns:
            return cast("list[str]", schema.names)
        return named_columns(self.config.columns, schema, self.config.missing_columns)

    def _records(self, file: BinaryIO) -> Iterator[BlockRecords]:
        lines = read_lines(as_utf8(file, self.config.encoding))
        return read_records(lines, self._dialect, self.config.comment)

    def file_writer(self, file: BinaryIO, schema: pa.Schema) -> FileWriter:
        return _Writer(file, self, schema)

    def infer_schema(self, payloads: pa.BinaryArray) -> pa.Schema | None:
        texts = [payload for payload in payloads.slice(0, _SAMPLE).to_pylist() if payload]
        return self._infer(self.config.columns, texts) if self.config.columns else None

    def prepare(self, columns: pa.Schema) -> None:
        if self.config.header:
            self._writer.header(self.config.columns or columns.names)

    def infer_file(self, file: BinaryIO) -> pa.Schema | None:
        blocks = (remove_blank(block.texts, block.numbers)[0] for block in self._records(file))
        records = sample(blocks, _SAMPLE + 1)
        if not len(records):
            return None
        if not self.config.header:
            return self.infer_schema(records)
        header = Header(records[0].as_py(), self._dialect)
        header.check_encoding()
        return self._infer(header.names, records.slice(1).to_pylist())

    def _infer(self, names: Sequence[str], records: list[bytes]) -> pa.Schema:
        check_distinct(pa.schema([(name, pa.null()) for name in names]))
        types = dict.fromkeys(names, pa.null())
        for record in records:
            fields = self._dialect.fields(record) or []
            if len(fields) == len(names):
                for name, (text, _) in zip(names, fields, strict=True):
                    value = text.decode(errors="replace")
                    if value and value not in self.config.nulls:
                        types[name] = merge_types(types[name], _infer_type(value.strip()))
        return pa.schema([column_of(name, type_) for name, type_ in types.items()])


class _Writer(FileWriter):
    def __init__(self, file: BinaryIO, format_: Csv, schema: pa.Schema) -> None:
        self.file = file
        self.format = format_
        if format_.config.header:
            names = format_.config.columns or schema.names
            file.write(format_._writer.header(names))

    def write(self, rows: pa.RecordBatch) -> Encoded | None:
        encoded = self.format.encode(rows)
        self.file.write(join_lines(encoded.payloads))
        return encoded if encoded.failures else None

    def close(self) -> None:
        pass


def _infer_type(text: str) -> pa.DataType:
    if _NUMBER.match(text):
        return infer_number_type(text)
    return pa.bool_() if text.lower() in ("true", "false") else infer_text_type(text)


def _check_flat(schema: pa.Schema) -> None:
    for field in chain(schema):
        if pa.types.is_nested(field.type):
            message = f'csv has no {sql_name(field.type)} (column "{field.name}")'
            raise PlanError(message, code="unsupported-type", hint="Use the format json.")


def _selected(names: Sequence[str], schema: pa.Schema) -> list[str]:
    """Returns the columns of `schema` that the option `columns` names. Raises PlanError."""
    matches = match_names(names, schema.names)
    unknown = [name for index, name in enumerate(names) if index not in matches]
    if unknown:
        raise PlanError(
            f'columns: unknown column "{unknown[0]}"',
            code="unknown-column",
            hint=did_you_mean(unknown[0], schema.names),
        )
    return [matches[index] for index in range(len(names))]


def _unencodable(error: Exception) -> EncodeError:
    return EncodeError(f"cannot write the row as CSV: {error_text(error)}")
