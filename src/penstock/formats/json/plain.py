"""JSON objects without a schema registry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, BinaryIO, ClassVar, Literal, Self, cast

import pyarrow as pa
from pydantic import model_validator

from penstock.core.errors import DecodeError, EncodeError
from penstock.formats.json import write
from penstock.formats.json.connect import (
    in_whole_millis,
    payload_of,
    unwrap,
    wrap,
    wrapped_columns,
)
from penstock.formats.json.decimals import Decimals, Forms
from penstock.formats.json.infer import infer
from penstock.formats.json.normalize import Normalizer
from penstock.formats.json.read import Reader, Suspect
from penstock.formats.json.values import Values, has_values, read_values
from penstock.formats.json.wrapped import columns_of_schemas, decode_wrapped
from penstock.sdk.bisect_failures import bisect_failures
from penstock.sdk.columns.binary_arrays import decode_non_null
from penstock.sdk.columns.conform import collect_encoded, error_text
from penstock.sdk.columns.scalar_parsing import NumberTimes
from penstock.sdk.encoding.fallback import decode_with_fallback
from penstock.sdk.encoding.lines import LineWriter, read_lines, sample, too_long_error
from penstock.sdk.encoding.text_lines import LinesConfig, LinesFormat
from penstock.sdk.encoding.time_options import TimeOptions
from penstock.sdk.encoding.transcoding import AUTO, Rejoined, as_utf8, payloads_as_utf8
from penstock.sdk.format import START_BYTES, FileFormat, FileWriter
from penstock.sdk.null_text import NullText
from penstock.sdk.record import Decoded, Encoded, Read
from penstock.sdk.schema_registry import RegistryOptions

_SAMPLE = 1000


class JsonConfig(LinesConfig, TimeOptions):
    """Options of `json`."""

    unknown: Literal["ignore", "reject"] = "ignore"
    """Ignore or reject records with keys that are not columns. `reject` is ten times slower."""
    timestamp_numbers: NumberTimes = "reject"
    """With `timestamps: iso`, read numbers as errors, or as nanoseconds since 1970. `nanos` is ten
    times slower for them."""
    timestamp_zone: Literal["utc", "none"] = "utc"
    """With `timestamps: iso`, write a TIMESTAMP with the zone `Z`, or without a zone, as in
    `2024-01-02T03:04:05`."""
    decimals: Decimals = "number"
    """The form of DECIMAL: numbers, texts, or `bytes`, which is base64 of the unscaled value as in
    Kafka Connect. Numbers and their texts are read in both of the first two forms; with `bytes`
    texts are base64, with the scale of the column."""
    binary: Literal["base64", "hex"] = "base64"
    """The form in which BINARY is written: base64 or hexadecimal digits. It is read as base64."""
    wrapper: Literal["none", "connect"] = "none"
    """`connect` reads and writes each object as the `payload` of a record of Kafka Connect, beside
    its `schema`, which has the units of times and the form of decimals. Written milliseconds are
    whole numbers."""
    nulls: Literal["omit", "keep"] = "omit"
    """Omit a null column and a null field of a STRUCT, or write `null`. Null elements of an ARRAY
    and null values of a MAP are written as `null` in both cases."""
    layout: Literal["auto", "lines", "values"] = "auto"
    """The layout of a file to read: an object on each line, or with `values` an array of objects or
    objects of several lines. With `auto` a file has values if it starts with `[`, or with a line
    that ends after `{`, `[`, `,` or `:`. Files are written as lines."""
    not_finite: Annotated[Literal["text", "null"], NullText()] = "text"
    """The form in which NaN and infinity are written: "NaN" and "Infinity", or `null`."""
    registry: RegistryOptions | None = None
    """A schema registry: each payload starts with the ID of its JSON Schema."""

    @model_validator(mode="after")
    def _check_registry(self) -> Self:
        if self.registry is not None and self.framing != "none":
            raise ValueError("expected no framing with a registry")
        if self.registry is not None and self.encoding != AUTO:
            raise ValueError("expected no encoding with a registry")
        if self.registry is not None and self.wrapper != "none":
            raise ValueError("expected no wrapper with a registry")
        return self


class PlainJson(LinesFormat[JsonConfig]):
    """JSON objects without a schema registry."""

    extension: ClassVar[str] = ".jsonl"
    days: ClassVar[bool] = False
    """Whether a number is a date, in days since 1970."""

    def decode(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        return self._decode(payloads_as_utf8(payloads, self.config.encoding), schema)

    def _decode(self, texts: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        return decode_non_null(texts, lambda present: self._decode_present(present, schema))

    def _decode_present(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        if self.config.wrapper == "none":
            return self._decode_objects(payloads, schema)
        return decode_wrapped(
            payloads,
            schema,
            self.config.conversion,
            self.typed()._decode_objects,
            lambda objects: self._decode_objects(objects, schema),
            lambda texts: self._decode_without_schema(texts, schema),
        )

    def typed(self) -> PlainJson:
        """Returns the format of payloads whose times and decimals are as a schema has them."""
        update = {"timestamps": "iso", "decimals": "number", "wrapper": "none"}
        return PlainJson(self.config.model_copy(update=update), self.context)

    def _decode_without_schema(self, texts: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        wrapped = wrapped_columns(schema, has_schema=self.config.unknown == "reject")
        decoded = self._decode_objects(texts, wrapped)
        return decoded._replace(rows=unwrap(decoded.rows, schema))

    def _decode_objects(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        closed = self.config.unknown == "reject"
        form, decimals = self.config.time_form, self.config.decimals
        reader = Reader(schema, form, decimals)
        numbers = self.config.timestamp_numbers
        normalizer = Normalizer(schema, form, closed, numbers, decimals, self.days)
        return decode_with_fallback(
            payloads,
            schema,
            _always_fall_back if closed else reader.read,
            normalizer.normalize
            if closed
            else lambda payload: _canonical(payload, normalizer, reader),
            lambda texts: _read_canonical(texts, reader),
        )

    def infer_schema(self, payloads: pa.BinaryArray) -> pa.Schema | None:
        texts = [text for text in payloads.slice(0, _SAMPLE).to_pylist() if text is not None]
        if self.config.wrapper == "none":
            return infer(texts)
        return columns_of_schemas(texts) or infer(texts, payload_of)

    def encode(self, rows: pa.RecordBatch) -> Encoded:
        if self.config.wrapper == "none":
            return self._encode_objects(rows)
        times = self.config.timestamps
        encoded = self._encode_objects(in_whole_millis(rows) if times == "millis" else rows)
        forms = Forms(times, self.config.decimals)
        return encoded._replace(payloads=wrap(encoded.payloads, rows.schema, forms))

    def _encode_objects(self, rows: pa.RecordBatch) -> Encoded:
        times, decimals = self.config.timestamps, self.config.decimals
        keep = self.config.nulls == "keep"
        if self.config.timestamp_zone == "none":
            rows = write.without_zone(rows)
        if self.config.not_finite == "null":
            rows = write.without_not_finite(rows)
        if self.config.binary == "hex":
            rows = write.with_hex(rows)

        def attempt(start: int, stop: int) -> pa.BinaryArray:
            return write.payloads(rows.slice(start, stop - start), times, keep, decimals)

        return collect_encoded(bisect_failures(rows.num_rows, attempt, _unencodable))

    def read_file(
        self, file: BinaryIO, schema: pa.Schema, origin: str, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        for texts, numbers, bad in self._blocks(file):
            for number, start, error in bad:
                read.reject(start, origin, number, error)
            decoded = self._decode(texts, schema)
            for failure in decoded.failures:
                payload = texts[failure[0]].as_py()
                if payload.strip():
                    read.reject(payload, origin, int(numbers[failure[0]]), failure.error)
            positions = numbers if decoded.index is None else numbers[decoded.index.to_numpy()]
            if decoded.rows.num_rows:
                yield decoded.rows, pa.array(positions)

    def _blocks(self, file: BinaryIO) -> Iterator[Values]:
        text = as_utf8(file, self.config.encoding)
        start = b"" if self.config.layout == "lines" else _read_start(text)
        text = cast(BinaryIO, Rejoined(start, text))
        if self.config.layout == "values" or has_values(start):
            yield from read_values(text)
            return
        for texts, numbers, too_long in read_lines(text):
            bad = [(number, line, too_long_error()) for number, line in too_long]
            yield Values(texts, numbers, bad)

    def is_divisible(self, start: bytes) -> bool:
        if self.config.layout == "values" or (self.config.layout == "auto" and has_values(start)):
            return False
        return super().is_divisible(start)

    def without_start(self) -> FileFormat[JsonConfig]:
        config = self.config.model_copy(update={"layout": "lines"})
        return type(self)(config, self.context)._with_encoding(
            "utf-8" if config.encoding == AUTO else config.encoding
        )

    def read_record(
        self, payload: bytes, header: bytes, schema: pa.Schema, origin: str, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        decoded = self._decode(pa.array([payload], pa.binary()), schema)
        for failure in decoded.failures:
            read.reject(payload, origin, 1, failure.error)
        if decoded.rows.num_rows:
            yield decoded.rows, pa.array([1], pa.int64())

    def file_writer(self, file: BinaryIO, schema: pa.Schema) -> FileWriter:
        return LineWriter(file, self)

    def infer_file(self, file: BinaryIO) -> pa.Schema | None:
        return self.infer_schema(sample((block.texts for block in self._blocks(file)), _SAMPLE))


def _read_start(file: BinaryIO) -> bytes:
    start = b""
    while len(start) < START_BYTES and (chunk := file.read(START_BYTES - len(start))):
        start += chunk
    return start


class _Original(bytes):
    """A payload that only the bulk reader accepts, as `{"a": 1,}`. Its keys are not canonical."""


def _canonical(payload: bytes, normalizer: Normalizer, reader: Reader) -> bytes:
    """Returns the canonical form of a payload, or an `_Original`."""
    try:
        return normalizer.normalize(payload)
    except DecodeError as error:
        if error.code not in ("not-json", "too-deep"):
            raise
        try:
            reader.read(pa.array([payload], pa.binary()))
        except Exception:
            raise error from None
        return _Original(payload)


def _read_canonical(texts: list[bytes], reader: Reader) -> pa.RecordBatch:
    """Returns the rows of texts from `_canonical`. Raises Suspect for an `_Original` among several.

    The caller then reads halves, so that an `_Original` is read alone.
    """
    if not any(isinstance(text, _Original) for text in texts):
        return reader.parse(b"\n".join(texts), len(texts))
    if len(texts) > 1:
        raise Suspect
    return reader.read(pa.array(texts, pa.binary()))


def _always_fall_back(payloads: pa.BinaryArray) -> pa.RecordBatch:
    raise Suspect


def _unencodable(error: Exception) -> EncodeError:
    return EncodeError(f"cannot write the row as JSON: {error_text(error)}")
