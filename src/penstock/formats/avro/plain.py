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
    rows_of,
    undecodable,
    unencodable,
    value_of,
    values_of,
)
from penstock.formats.avro.json_rows import json_rows
from penstock.sdk.columns.avro_types import arrow_schema, avro_schema
from penstock.sdk.columns.binary_arrays import decode_non_null
from penstock.sdk.columns.conform import collect_encoded, conform, conform_each
from penstock.sdk.component import Context
from penstock.sdk.config import UserPath
from penstock.sdk.encoding.arrow_files import check_file_columns, spark_compatible
from penstock.sdk.encoding.fallback import decode_in_parts
from penstock.sdk.encoding.json_texts import COLUMNS
from penstock.sdk.encoding.time_options import TimeOptions
from penstock.sdk.format import FileFormat, FileWriter
from penstock.sdk.isolate import isolate
from penstock.sdk.record import Decoded, Encoded, Read
from penstock.sdk.schema_registry import RegistryOptions


class AvroConfig(TimeOptions):
    """Options of `avro`."""

    datum: dict[str, Any] | list[Any] | str | None = Field(default=None, alias="schema")
    """The Avro schema, as JSON text or as YAML. Files contain their own schema."""
    schema_file: UserPath | None = None
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

    @model_validator(mode="after")
    def _check_framing(self) -> Self:
        if self.registry is not None and self.framing != "none":
            raise ValueError("expected no framing with a registry")
        return self


class PlainAvro(FileFormat[AvroConfig]):
    """Avro datums and files without a schema registry."""

    extension: ClassVar[str] = ".avro"

    def __init__(self, config: AvroConfig, context: Context | None = None) -> None:
        super().__init__(config, context)
        self.datum = configured_schema(config.datum, config.schema_file, any_type=config.as_json)
        self._codec = None if self.datum is None else codec_of(self.datum)
        self._single = config.framing == "single_object"
        self._header = _single_object_header(self.datum) if self._single else b""

    def declared_schema(self) -> pa.Schema | None:
        if self.config.as_json:
            return COLUMNS
        return None if self.datum is None else spark_compatible(arrow_schema(self.datum))

    def decode(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        if self.datum is None:
            hint = "Set schema or schema_file."
            raise PlanError("avro payloads require a schema", code="missing-schema", hint=hint)
        datum = self._codec
        columns = self._columns(self.datum)

        def attempt(part: pa.BinaryArray) -> pa.RecordBatch:
            values = [self._value(payload, datum) for payload in part.to_pylist()]
            return conform(self._rows(values, columns, schema), schema, self.config.conversion)

        return decode_non_null(
            payloads, lambda present: decode_in_parts(present, schema, attempt, undecodable)
        )

    def _columns(self, datum: Any) -> pa.Schema:
        """Returns the columns of the records of a schema; none with `as_json`."""
        return pa.schema([]) if self.config.as_json else arrow_schema(datum)

    def _rows(self, values: list[Any], columns: pa.Schema, schema: pa.Schema) -> pa.RecordBatch:
        """Returns records as rows of these columns, or as JSON text in a column of `schema`."""
        return json_rows(values, schema) if self.config.as_json else rows_of(values, columns)

    def _value(self, payload: bytes, datum: Any) -> Any:
        if not payload.startswith(self._header):
            single_object = payload.startswith(b"\xc3\x01")
            problem = "another schema's fingerprint" if single_object else "no single-object header"
            raise DecodeError(f"not Avro: {problem}", code="not-avro")
        return value_of(payload, len(self._header), datum)

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

        return collect_encoded(isolate(rows.num_rows, attempt, unencodable))

    def read_file(
        self, file: BinaryIO, schema: pa.Schema, origin: str, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        before = 0
        for values, count, columns, error in read_container(file, any_type=self.config.as_json):
            if before == 0 and len(columns):
                check_file_columns(columns, schema, origin)
            decoded = conform_each(
                self._rows(values, columns, schema), schema, self.config.conversion
            )
            for failure in decoded.failures:
                read.reject(None, origin, before + failure[0] + 1, failure.error)
            if error is not None:
                read.reject(None, origin, before + len(values) + 1, error)
            indexes = np.arange(len(values)) if decoded[1] is None else decoded[1].to_numpy()
            if decoded.rows.num_rows:
                yield decoded.rows, pa.array(indexes + before + 1, pa.int64())
            before += count

    def file_writer(self, file: BinaryIO, schema: pa.Schema) -> FileWriter:
        datum = self.datum if self.datum is not None else avro_schema(schema)
        config = self.config.model_copy(update={"framing": "none"})
        encoder = PlainAvro(config, self.context)
        encoder.datum = datum
        return ContainerWriter(file, encoder.encode, datum, self.config.compression)

    def infer_file(self, file: BinaryIO) -> pa.Schema | None:
        if self.config.as_json:
            return COLUMNS
        try:
            return spark_compatible(arrow_schema(container_schema(file)))
        except PlanError:
            raise
        except Exception:
            return None


def _single_object_header(datum: Any) -> bytes:
    if datum is None:
        return b""
    digest = fingerprint(to_parsing_canonical_form(datum), "CRC-64-AVRO")
    return b"\xc3\x01" + bytes.fromhex(digest)
