"""CSV: one record of fields; a file has a header line."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Annotated, BinaryIO, ClassVar, Self, cast

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AfterValidator, Field, model_validator

from penstock.core.errors import EncodeError, PlanError
from penstock.formats.csv import write
from penstock.formats.csv.read import Reader
from penstock.formats.csv.records import Dialect, read_records
from penstock.sdk.config import Config
from penstock.sdk.format import FileFormat, FileWriter
from penstock.sdk.isolate import isolate
from penstock.sdk.kit.arrays import joined, without_nulls
from penstock.sdk.kit.closely import decode_closely
from penstock.sdk.kit.columns import conform, gather_payloads, reason, sql_name
from penstock.sdk.kit.infer import merged, of_text
from penstock.sdk.kit.lines import Framing, Lines, Recoded, read_lines, records_of
from penstock.sdk.kit.values import Times
from penstock.sdk.record import Decoded, Encoded, Read, Records

_SAMPLE = 1000
_INT = re.compile(r"-?(0|[1-9]\d{0,17})\Z")
_FLOAT = re.compile(r"-?(0|[1-9]\d*)?\.?\d+([eE][+-]?\d+)?\Z")


def _encoding(name: str) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise ValueError("expected an encoding such as utf-8, latin-1 or utf-16") from None


class CsvConfig(Config):
    """Options of `csv`."""

    delimiter: str = Field(default=",", min_length=1, max_length=1, pattern=r"^[\x01-\x7f]$")
    """The character between fields; `"\\t"` for tabs."""
    quote: str = Field(default='"', max_length=1, pattern=r"^[\x01-\x7f]?$")
    """The character around fields that hold a delimiter, a quote or a line end; empty for none."""
    escape: str = Field(default="", max_length=1, pattern=r"^[\x01-\x7f]?$")
    """A character before quotes inside quotes, beside doubling them. For reading."""
    header: bool = True
    """Whether the first line of a file has the names of its columns."""
    columns: list[str] = []
    """The names of the fields of payloads and of files without a header, in order.

    The declared columns when absent."""
    nulls: list[str] = [""]
    """What stands for null, where it is not quoted."""
    comment: str = Field(default="", max_length=1)
    """Lines of a file that begin with this character are left out."""
    framing: Framing = "none"
    """What a payload holds: one record, or with `lines` one on each line that is not blank."""
    timestamps: Times = "iso"
    """How times are written: ISO 8601 text, or numbers since 1970 in this unit."""
    encoding: Annotated[str, AfterValidator(_encoding)] = "utf-8"
    """The encoding when reading. Written is always UTF-8."""

    @model_validator(mode="after")
    def _lines_of_bytes(self) -> Self:
        if self.framing == "lines" and self.encoding not in ("utf-8", "ascii", "iso8859-1"):
            raise ValueError("framing: lines is for payloads in utf-8, ascii or latin-1")
        return self


class Csv(FileFormat[CsvConfig]):
    """Comma-separated values after RFC 4180: one record a payload; files have a header (`.csv`).

    ```yaml
    format: {type: csv, delimiter: ";", nulls: ["", NA]}
    ```

    Columns of a file go by the names in its header, in any order; a declared column that the
    header lacks is null, other columns are ignored. Payloads have no header: their fields are the
    declared columns in order, or those of `columns`. A record with more or fewer fields than that
    is an error.

    An empty field is null, `""` the empty text (null if the column is neither STRING nor BINARY).
    Integers, DECIMAL, DOUBLE, TIMESTAMP, DATE and BINARY (base64) are read as by the format `json`,
    from text; BOOLEAN is true, false, 1 or 0; white space around anything but text is ignored.
    ARRAY, MAP and STRUCT are not possible. A bad value is an error of its record only, and so is a
    quote that is not closed within 1 MB. The position is the number of a record's first line; blank
    lines are skipped. Written with quotes where they are needed, and `\\n` as line end.
    """

    extension: ClassVar[str] = ".csv"
    position: ClassVar[str] = "line"

    @property
    def _dialect(self) -> Dialect:
        return Dialect(self.config.delimiter, self.config.quote, self.config.escape)

    def records(self, payloads: pa.BinaryArray) -> Records:
        return records_of(payloads) if self.config.framing == "lines" else Records(payloads, None)

    def decode(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        names = self.config.columns or schema.names
        if self.config.encoding != "utf-8":
            texts = [p if p is None else self._recoded(p) for p in payloads.to_pylist()]
            payloads = pa.array(texts, pa.binary())
        return without_nulls(payloads, lambda some: self._decode(some, names, schema))

    def _recoded(self, payload: bytes) -> bytes:
        text = payload.decode(self.config.encoding, errors="surrogateescape")
        return text.encode(errors="surrogateescape")

    def _decode(self, records: pa.BinaryArray, names: Sequence[str], schema: pa.Schema) -> Decoded:
        _refuse_nested(schema)
        nulls = tuple(self.config.nulls)
        reader = Reader(tuple(names), schema, self._dialect, nulls, self.config.timestamps)
        return decode_closely(records, schema, reader.read, reader.mend, reader.read_mended)

    def encode(self, rows: pa.RecordBatch) -> Encoded:
        _refuse_nested(rows.schema)
        if self.config.quote != '"' or self.config.escape:
            raise PlanError('csv is written with the quote " only', code="unsupported")
        if self.config.columns:
            rows = conform(rows, pa.schema([rows.schema.field(n) for n in self.config.columns]))

        def attempt(start: int, stop: int) -> pa.BinaryArray:
            some = rows.slice(start, stop - start)
            config = self.config
            return write.records(some, config.delimiter, config.nulls, config.timestamps)

        return gather_payloads(isolate(rows.num_rows, attempt, _unencodable))

    def read_file(
        self, file: BinaryIO, schema: pa.Schema, origin: str, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        names: Sequence[str] | None = None if self.config.header else self._names(schema)
        for texts, numbers, bad in read_records(self._lines(file), self._dialect):
            for number, text, error in bad:
                read.reject(text, origin, number, error)
            if names is None and len(texts):
                names = self._header(texts[0].as_py())
                texts, numbers = texts.slice(1), numbers[1:]
            if names is None or not len(texts):
                continue
            found = self._decode(texts, names, schema)
            for index, error in found.failures:
                read.reject(texts[index].as_py(), origin, int(numbers[index]), error)
            places = numbers if found[1] is None else numbers[found[1].to_numpy()]
            if found.rows.num_rows:
                yield found.rows, pa.array(places)

    def head(self, file: BinaryIO) -> bytes:
        if not self.config.header:
            return b""
        records = (r.texts for r in read_records(self._lines(file), self._dialect))
        first = next((texts[0].as_py() for texts in records if len(texts)), b"")
        return cast(bytes, first.decode().encode(self.config.encoding) + b"\n")

    def _names(self, schema: pa.Schema) -> Sequence[str]:
        return self.config.columns or cast("list[str]", schema.names)

    def _lines(self, file: BinaryIO) -> Iterator[Lines]:
        if self.config.encoding != "utf-8":
            file = cast(BinaryIO, Recoded(file, self.config.encoding))
        for lines in read_lines(file, blank=True):
            if self.config.comment:
                keep = pc.invert(pc.starts_with(lines.texts, pattern=self.config.comment))
                numbers = lines.numbers[keep.to_numpy(zero_copy_only=False)]
                lines = Lines(lines.texts.filter(keep), numbers, lines.too_long)
            yield lines

    def _header(self, record: bytes) -> list[str]:
        fields = self._dialect.fields(record) or []
        return [text.decode(errors="replace").strip() for text, _ in fields]

    def file_writer(self, file: BinaryIO, schema: pa.Schema) -> FileWriter:
        return _Writer(file, self, schema)

    def infer(self, payloads: pa.BinaryArray) -> pa.Schema | None:
        sample = [p for p in payloads.slice(0, _SAMPLE).to_pylist() if p]
        return self._inferred(self.config.columns, sample) if self.config.columns else None

    def infer_file(self, file: BinaryIO) -> pa.Schema | None:
        found = read_records(self._lines(file), self._dialect)
        records = next((r.texts for r in found if len(r.texts)), None)
        if records is None:
            return None
        if not self.config.header:
            return self.infer(records)
        sample = records.slice(1, _SAMPLE).to_pylist()
        return self._inferred(self._header(records[0].as_py()), sample)

    def _inferred(self, names: Sequence[str], records: list[bytes]) -> pa.Schema:
        types = dict.fromkeys(names, pa.null())
        for record in records:
            fields = self._dialect.fields(record) or []
            if len(fields) == len(names):
                for name, (text, _) in zip(names, fields, strict=True):
                    value = text.decode(errors="replace")
                    if value and value not in self.config.nulls:
                        types[name] = merged(types[name], _type(value.strip()))
        found = {n: pa.string() if pa.types.is_null(t) else t for n, t in types.items()}
        return pa.schema(list(found.items()))


class _Writer(FileWriter):
    def __init__(self, file: BinaryIO, format_: Csv, schema: pa.Schema) -> None:
        self.file = file
        self.format = format_
        if format_.config.header:
            names = format_.config.columns or schema.names
            file.write(write.header(names, format_.config.delimiter))

    def write(self, rows: pa.RecordBatch) -> Encoded | None:
        encoded = self.format.encode(rows)
        self.file.write(joined(encoded.payloads))
        return encoded if encoded.failures else None

    def close(self) -> None:
        pass


def _type(text: str) -> pa.DataType:
    if _INT.match(text):
        return pa.int64()
    if _FLOAT.match(text) and not re.match(r"-?0\d", text):
        return pa.float64()
    return pa.bool_() if text.lower() in ("true", "false") else of_text(text)


def _refuse_nested(schema: pa.Schema) -> None:
    for field in chain(schema):
        if pa.types.is_nested(field.type):
            message = f'csv has no {sql_name(field.type)} (column "{field.name}")'
            raise PlanError(message, code="unsupported-type", hint="use the format json")


def _unencodable(error: Exception) -> EncodeError:
    return EncodeError(f"the row has no CSV: {reason(error)}")
