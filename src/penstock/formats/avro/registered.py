"""Avro whose payloads begin with the id of their schema in a registry."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pyarrow as pa
from fastavro.read import SchemaResolutionError

from penstock.core.errors import DecodeError, PlanError
from penstock.formats.avro import datum as avro
from penstock.formats.avro.references import inlined
from penstock.sdk.component import Context
from penstock.sdk.isolate import isolate
from penstock.sdk.kit.avrotypes import arrow_schema, avro_schema, plain
from penstock.sdk.kit.closely import decode_parts
from penstock.sdk.kit.columns import conform, gather_payloads, is_list
from penstock.sdk.kit.registry import Draft, Registered, RegistryFormat
from penstock.sdk.kit.registry.fit import need_fit
from penstock.sdk.kit.registry.format import Decode, Encoder
from penstock.sdk.kit.registry.frame import Origin
from penstock.sdk.kit.tables import portable
from penstock.sdk.record import Decoded, Encoded

_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")


class RegisteredAvro(RegistryFormat):
    """Resolves what was written to the schema given, or pinned, by Avro's rules."""

    kind = "AVRO"

    def __init__(self, config: Any, context: Context | None = None) -> None:
        super().__init__(config, context)
        self.datum = avro.given(config.datum, config.schema_file)

    def declared(self) -> pa.Schema | None:
        return None if self.datum is None else portable(arrow_schema(self.datum))

    def columns_of(self, schema: Registered) -> pa.Schema:
        return portable(arrow_schema(inlined(schema, self.registry)))

    def pinned(self, schema: Registered) -> Registered:
        text = json.dumps(plain(inlined(schema, self.registry)))
        return replace(schema, text=text, references=())

    def decoder(self, origin: Origin, writer: Registered, reader: Registered | None) -> Decode:
        wrote = inlined(writer, self.registry)
        meant, of = self._reader(reader)
        if meant is None:
            meant = wrote
        whole = arrow_schema(meant)
        _need_same_times(pa.struct(list(arrow_schema(wrote))), pa.struct(list(whole)), origin.id)
        read, as_ = avro.codec(wrote), None if meant == wrote else avro.codec(meant)

        def blame(error: Exception) -> DecodeError:
            if isinstance(error, SchemaResolutionError):
                return _incompatible(f"schema {origin.id} cannot be read as {of}: {error}")
            return avro.undecodable(error)

        def decode(payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
            def attempt(some: pa.BinaryArray) -> pa.RecordBatch:
                values = [avro.value_of(payload, 0, read, as_) for payload in some.to_pylist()]
                return conform(avro.rows_of(values, whole), schema)

            return decode_parts(payloads, schema, attempt, blame)

        return decode

    def _reader(self, pinned: Registered | None) -> tuple[Any, str]:
        """The schema as which data are read, if there is one, and what it is called."""
        if self.datum is not None:
            return self.datum, "the schema given"
        if pinned is None:
            return None, ""
        return avro.parsed(pinned.text), f"schema {pinned.id}, which the first run found"

    def encoder(self, columns: pa.Schema, schema: Registered | None) -> Encoder:
        datum = self.datum if self.datum is not None else avro_schema(columns)
        wrong = [name for name in columns.names if not _NAME.fullmatch(name)]
        if wrong:
            raise PlanError(
                f'"{wrong[0]}" is not a name in Avro: letters, digits and underscores',
                code="invalid-name",
            )
        if schema is not None:
            datum = inlined(schema, self.registry)
        whole, codec = arrow_schema(datum), avro.codec(datum)
        need_fit(columns, whole, "the Avro schema")

        def encode(rows: pa.RecordBatch) -> Encoded:
            def attempt(start: int, stop: int) -> pa.BinaryArray:
                some = avro.values_of(conform(rows.slice(start, stop - start), whole))
                return pa.array([avro.payload_of(each, codec, b"") for each in some], pa.binary())

            return gather_payloads(isolate(rows.num_rows, attempt, avro.unencodable))

        return Encoder(encode, Draft(self.kind, json.dumps(plain(datum))))


def _need_same_times(wrote: pa.DataType, meant: pa.DataType, id_: int) -> None:
    """Avro takes a time of another unit for the same number. Raises DecodeError."""
    if pa.types.is_struct(wrote) and pa.types.is_struct(meant):
        for field in wrote:
            if meant.get_field_index(field.name) >= 0:
                _need_same_times(field.type, meant.field(field.name).type, id_)
    elif is_list(wrote) and is_list(meant):
        _need_same_times(wrote.value_type, meant.value_type, id_)
    elif pa.types.is_map(wrote) and pa.types.is_map(meant):
        _need_same_times(wrote.item_type, meant.item_type, id_)
    elif pa.types.is_temporal(wrote) and pa.types.is_temporal(meant) and wrote != meant:
        raise _incompatible(f"schema {id_} has a {wrote} where a {meant} is read")


def _incompatible(message: str) -> DecodeError:
    return DecodeError(message, code="incompatible-schema")
