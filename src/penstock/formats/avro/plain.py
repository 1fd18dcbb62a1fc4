"""Avro datums and files without a schema registry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, ClassVar, Literal, Self

import numpy as np
import pyarrow as pa
from fastavro.schema import fingerprint, to_parsing_canonical_form
from pydantic import Field, model_validator

from penstock.core.errors import DecodeError, PlanError
from penstock.formats.avro.container import ContainerWriter, container_schema, read_container
from penstock.formats.avro.datum import codec as codec_of
from penstock.formats.avro.datum import (
    configured_schema,
    row_payload,
    undecodable,
    unencodable,
    value_of,
    values_of,
)
from penstock.formats.avro.rows import RowReader, Value
from penstock.sdk.bisect_failures import bisect_failures
from penstock.sdk.columns.avro_types import arrow_schema, avro_schema
from penstock.sdk.columns.binary_arrays import decode_non_null
from penstock.sdk.columns.conform import collect_encoded, conform
from penstock.sdk.component import Context
from penstock.sdk.config import UserFile
from penstock.sdk.encoding.arrow_files import check_file_columns, spark_compatible
from penstock.sdk.encoding.fallback import decode_in_parts
from penstock.sdk.encoding.json_texts import COLUMNS, check_text_column
from penstock.sdk.encoding.time_options import TimeOptions
from penstock.sdk.encoding.type_column import check_type_column
from penstock.sdk.format import FileFormat, FileWriter
from penstock.sdk.record import Decoded, Encoded, Read
from penstock.sdk.schema_registry import RegistryOptions


class AvroConfig(TimeOptions):
    """Options of `avro`."""

    datum: dict[str, Any] | list[Any] | str | None = Field(default=None, alias="schema")
    """The Avro schema, as JSON text or as YAML. Files contain their own schema."""
    schema_file: UserFile | None = None
    """The file of the Avro schema (`.avsc`)."""
    framing: Literal["none", "single_object", "container"] = "none"
    """The content of a payload: a datum, a datum in single-object encoding (the fingerprint must
    match the schema), or an object `container` with any number of datums."""
    registry: RegistryOptions | None = None
    """A schema registry: each payload starts with the ID of its schema. Without `schema` the
    schema of the registry is used."""
    compression: Literal["deflate", "none"] = "deflate"
    """The compression of blocks in written files and containers."""

    as_json: bool = False
    """Read each record of any schema as one STRING or VARIANT column, by default `value`, with its
    JSON text. Dates and times are their numbers in Avro, decimals are numbers, and bytes are
    texts of one character per byte. A value of a union has no type name."""
    type_column: str | None = None
    """A STRING column with the full name of the record, for payloads of several records: a schema
    that is a union, or several schemas of a `registry`. For reading."""

    @model_validator(mode="after")
    def _check_framing(self) -> Self:
        if self.registry is not None and self.framing != "none":
            raise ValueError("expected no framing with a registry")
        if self.as_json and self.type_column is not None:
            raise ValueError("expected no type_column with as_json")
        return self


class PlainAvro(FileFormat[AvroConfig]):
    """Avro datums and files without a schema registry."""

    extension: ClassVar[str] = ".avro"

    def __init__(self, config: AvroConfig, context: Context | None = None) -> None:
        super().__init__(config, context)
        self.datum = configured_schema(config.datum, config.schema_file, any_type=config.as_json)
        self._single = config.framing == "single_object"
        self._header = _single_object_header(self.datum) if self._single else b""

    def declared_schema(self) -> pa.Schema | None:
        return None if self.datum is None else declared_columns(self.datum, self.config)

    def check_columns(self, columns: pa.Schema) -> None:
        check_columns(columns, self.datum, self.config)

    def decode(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        if self.datum is None:
            hint = "Set schema or schema_file."
            raise PlanError("avro payloads require a schema", code="missing-schema", hint=hint)
        reader = self._reader(self.datum, schema)

        def attempt(part: pa.BinaryArray) -> pa.RecordBatch:
            return reader.rows([self._value(payload, reader) for payload in part.to_pylist()])

        return decode_non_null(
            payloads, lambda present: decode_in_parts(present, schema, attempt, undecodable)
        )

    def _reader(self, datum: Any, schema: pa.Schema) -> RowReader:
        config = self.config
        return RowReader(
            datum, schema, type_column=config.type_column, as_json=config.as_json,
            conversion=config.conversion,
        )  # fmt: skip

    def _value(self, payload: bytes, reader: RowReader) -> Value:
        if not payload.startswith(self._header):
            single_object = payload.startswith(b"\xc3\x01")
            problem = "another schema's fingerprint" if single_object else "no single-object header"
            raise DecodeError(f"not Avro: {problem}", code="not-avro")
        return value_of(payload, len(self._header), reader.read)

    def encode(self, rows: pa.RecordBatch) -> Encoded:
        datum = self.datum if self.datum is not None else avro_schema(rows.schema)
        header = self._header
        if self._single and not header:
            header = _single_object_header(datum)
        columns, codec = arrow_schema(datum), codec_of(datum)

        def attempt(start: int, stop: int) -> pa.BinaryArray:
            part = conform(rows.slice(start, stop - start), columns, self.config.conversion)
            return pa.array(
                [row_payload(value, codec, header) for value in values_of(part)], pa.binary()
            )

        return collect_encoded(bisect_failures(rows.num_rows, attempt, unencodable))

    def read_file(
        self, file: BinaryIO, schema: pa.Schema, origin: str, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        before = 0
        parts = read_container(file, lambda datum: self._reader(datum, schema))
        for values, count, reader, error in parts:
            if before == 0 and reader is not None and not self.config.as_json:
                check_file_columns(reader.file_columns, schema, origin)
            decoded = reader.decode(values) if reader is not None else None
            for failure in decoded.failures if decoded is not None else ():
                read.reject(None, origin, before + failure[0] + 1, failure.error)
            if error is not None:
                read.reject(None, origin, before + len(values) + 1, error)
            if decoded is not None and decoded.rows.num_rows:
                all_rows = np.arange(len(values))
                indexes = all_rows if decoded[1] is None else decoded[1].to_numpy()
                yield decoded.rows, pa.array(indexes + before + 1, pa.int64())
            before += count

    def file_writer(self, file: BinaryIO, schema: pa.Schema) -> FileWriter:
        datum = self.datum if self.datum is not None else avro_schema(schema)
        config = self.config.model_copy(update={"framing": "none"})
        encoder = PlainAvro(config, self.context)
        encoder.datum = datum
        return ContainerWriter(file, encoder.encode, datum, self.config.compression)

    def infer_file(self, file: BinaryIO) -> pa.Schema | None:
        try:
            return declared_columns(container_schema(file), self.config)
        except PlanError:
            raise
        except Exception:
            return None


def declared_columns(datum: Any, config: AvroConfig) -> pa.Schema:
    """Returns the columns of a schema. Raises PlanError."""
    if config.as_json:
        return COLUMNS
    columns = spark_compatible(arrow_schema(datum))
    if config.type_column is None:
        return columns
    return columns.append(pa.field(config.type_column, pa.string(), nullable=False))


def check_columns(columns: pa.Schema, datum: Any, config: AvroConfig) -> None:
    """Raises PlanError if the values of a schema, if it is known, have no such columns."""
    check_type_column(columns, config.type_column)
    if config.as_json:
        check_text_column(columns, "avro")
    elif datum is not None:
        RowReader(datum, columns, type_column=config.type_column)


def _single_object_header(datum: Any) -> bytes:
    if datum is None:
        return b""
    digest = fingerprint(to_parsing_canonical_form(datum), "CRC-64-AVRO")
    return b"\xc3\x01" + bytes.fromhex(digest)
