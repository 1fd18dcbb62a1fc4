"""Avro: one datum a record; a file is an object container."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, ClassVar, Literal, Self

import fastavro
import numpy as np
import pyarrow as pa
from fastavro.schema import fingerprint, to_parsing_canonical_form
from pydantic import Field, model_validator

from penstock.core.errors import DecodeError, PlanError
from penstock.formats.avro.container import ContainerWriter, blocks
from penstock.formats.avro.datum import codec as codec_of
from penstock.formats.avro.datum import (
    given,
    payload_of,
    rows_of,
    undecodable,
    unencodable,
    value_of,
    values_of,
)
from penstock.sdk.component import Component, Context
from penstock.sdk.config import Config, UserPath
from penstock.sdk.format import FileFormat, FileWriter
from penstock.sdk.isolate import isolate
from penstock.sdk.kit.arrays import without_nulls
from penstock.sdk.kit.avrotypes import arrow_schema, avro_schema
from penstock.sdk.kit.closely import decode_parts
from penstock.sdk.kit.columns import conform, conform_each, gather_payloads
from penstock.sdk.kit.registry import RegistryOptions
from penstock.sdk.kit.streams import buffered
from penstock.sdk.kit.tables import portable
from penstock.sdk.record import Decoded, Encoded, Read


class AvroConfig(Config):
    """Options of `avro`."""

    datum: dict[str, Any] | list[Any] | str | None = Field(default=None, alias="schema")
    """The Avro schema, as JSON text or written out in YAML. Files carry their own."""
    schema_file: UserPath | None = None
    """A file with the Avro schema (`.avsc`)."""
    framing: Literal["none", "single_object", "container"] = "none"
    """What a payload is: a datum alone, one behind the header of single-object encoding (whose
    fingerprint must be that of the schema), or an object `container` with any number of them."""
    registry: RegistryOptions | None = None
    """A schema registry: each payload begins with the id of its schema there, and the schema of
    the registry is the one that is meant where none is given here."""
    compression: Literal["deflate", "none"] = "deflate"
    """How the blocks of written files and containers are compressed."""

    @model_validator(mode="after")
    def _one_frame(self) -> Self:
        if self.registry is not None and self.framing != "none":
            raise ValueError("with a registry payloads are framed as it wants, not by `framing`")
        return self


class Avro(FileFormat[AvroConfig]):
    """Avro: one binary datum a payload, an object container as file (`.avro`).

    ```yaml
    format: {type: avro, schema_file: schemas/order.avsc}
    ```

    The schema is a record; its fields are the columns. Payloads need a schema, unless they are
    containers, which bring their own; without one, rows are written with a schema made from their
    columns. `long` is BIGINT, `bytes` and `fixed`
    BINARY, `enum` STRING, decimals, dates and times are what their logical types say
    (`timestamp-millis` and `-micros` TIMESTAMP, `local-timestamp-*` TIMESTAMP_NTZ), `[null, T]`
    is a T that may be null; other unions are not possible, nor are recursive schemas. Where the
    declared columns differ from the schema, values are converted if nothing is lost, missing
    columns are null, and anything else is an error of the record. Bytes left over after a datum
    are an error. A broken block of a file costs the rest of that block only, one of a payload the
    whole payload. The position in a file is the row's number. Rules: the Avro 1.12 specification.

    With `registry` the schema of each payload is fetched by its id. Its datum is read as the schema
    given here or, where none is and no columns are declared, as the one of the registry that the
    first run found and kept: fields that came later are left out, those that are missing have their
    defaults. Where columns are declared they are taken from what was written, by name. A sink
    registers the schema given here, or one made from the columns.
    """

    extension: ClassVar[str] = ".avro"

    def __init__(self, config: AvroConfig, context: Context | None = None) -> None:
        super().__init__(config, context)
        self.datum = given(config.datum, config.schema_file)
        self._codec = None if self.datum is None else codec_of(self.datum)
        self._single = config.framing == "single_object"
        self._header = _single_object_header(self.datum) if self._single else b""

    @classmethod
    def of(cls, config: AvroConfig, context: Context | None = None) -> Component[AvroConfig]:
        if config.framing == "container":
            from penstock.formats.avro.contained import ContainedAvro

            return ContainedAvro(config, context)
        if config.registry is None:
            return cls(config, context)
        from penstock.formats.avro.registered import RegisteredAvro

        return RegisteredAvro(config, context)

    def declared(self) -> pa.Schema | None:
        return None if self.datum is None else portable(arrow_schema(self.datum))

    def decode(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        if self.datum is None:
            hint = "say `schema:` or `schema_file:`"
            raise PlanError("avro payloads need a schema", code="missing-schema", hint=hint)
        datum, whole = self._codec, arrow_schema(self.datum)

        def attempt(some: pa.BinaryArray) -> pa.RecordBatch:
            values = [self._value(payload, datum) for payload in some.to_pylist()]
            return conform(rows_of(values, whole), schema)

        return without_nulls(
            payloads, lambda some: decode_parts(some, schema, attempt, undecodable)
        )

    def _value(self, payload: bytes, datum: Any) -> Any:
        if not payload.startswith(self._header):
            known = payload.startswith(b"\xc3\x01")
            problem = "another schema's fingerprint" if known else "no single-object header"
            raise DecodeError(f"not Avro: {problem}", code="not-avro")
        return value_of(payload, len(self._header), datum)

    def encode(self, rows: pa.RecordBatch) -> Encoded:
        datum = self.datum if self.datum is not None else avro_schema(rows.schema)
        header = self._header
        if self._single and not header:
            header = _single_object_header(datum)
        whole, codec = arrow_schema(datum), codec_of(datum)

        def attempt(start: int, stop: int) -> pa.BinaryArray:
            some = conform(rows.slice(start, stop - start), whole)
            return pa.array(
                [payload_of(value, codec, header) for value in values_of(some)], pa.binary()
            )

        return gather_payloads(isolate(rows.num_rows, attempt, unencodable))

    def read_file(
        self, file: BinaryIO, schema: pa.Schema, origin: str, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        before = 0
        for values, count, whole, error in blocks(file):
            found = conform_each(rows_of(values, whole), schema)
            for failure in found.failures:
                read.reject(None, origin, before + failure[0] + 1, failure.error)
            if error is not None:
                read.reject(None, origin, before + len(values) + 1, error)
            places = np.arange(len(values)) if found[1] is None else found[1].to_numpy()
            if found.rows.num_rows:
                yield found.rows, pa.array(places + before + 1, pa.int64())
            before += count

    def file_writer(self, file: BinaryIO, schema: pa.Schema) -> FileWriter:
        datum = self.datum if self.datum is not None else avro_schema(schema)
        plain = self.config.model_copy(update={"framing": "none"})
        datums = Avro(plain, self.context)
        datums.datum = datum
        return ContainerWriter(file, datums.encode, datum, self.config.compression)

    def infer_file(self, file: BinaryIO) -> pa.Schema | None:
        try:
            return portable(arrow_schema(fastavro.block_reader(buffered(file)).writer_schema))
        except (ValueError, EOFError, KeyError, IndexError, StopIteration):
            return None


def _single_object_header(datum: Any) -> bytes:
    if datum is None:
        return b""
    print_ = fingerprint(to_parsing_canonical_form(datum), "CRC-64-AVRO")
    return b"\xc3\x01" + bytes.fromhex(print_)
