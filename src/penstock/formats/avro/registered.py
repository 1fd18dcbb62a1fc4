"""Avro whose payloads start with the ID of their schema in a registry."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pyarrow as pa
from fastavro.read import SchemaResolutionError

from penstock.core.errors import DecodeError, PlanError
from penstock.formats.avro import datum as avro
from penstock.formats.avro.plain import check_columns, declared_columns
from penstock.formats.avro.references import inline_references
from penstock.formats.avro.rows import RowReader
from penstock.sdk.bisect_failures import bisect_failures
from penstock.sdk.columns.avro_schemas import strip_parsed_keys
from penstock.sdk.columns.avro_types import arrow_schema, avro_schema
from penstock.sdk.columns.conform import collect_encoded, conform
from penstock.sdk.columns.type_names import is_list
from penstock.sdk.component import Context
from penstock.sdk.encoding.fallback import decode_in_parts
from penstock.sdk.encoding.json_texts import COLUMNS
from penstock.sdk.record import Decoded, Encoded
from penstock.sdk.schema_registry import Draft, Registered, RegistryFormat
from penstock.sdk.schema_registry.compatibility import check_compatible
from penstock.sdk.schema_registry.format import Decode, Encoder
from penstock.sdk.schema_registry.wire_format import Origin

_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")


class RegisteredAvro(RegistryFormat):
    """Avro that resolves the writer schema to the configured or pinned reader schema."""

    kind = "AVRO"

    def __init__(self, config: Any, context: Context | None = None) -> None:
        super().__init__(config, context)
        self.datum = avro.configured_schema(
            config.datum, config.schema_file, any_type=config.as_json
        )

    def declared_schema(self) -> pa.Schema | None:
        if self.config.as_json:
            return COLUMNS
        return None if self.datum is None else declared_columns(self.datum, self.config)

    def check_columns(self, columns: pa.Schema) -> None:
        check_columns(columns, self.datum, self.config)

    def columns_of(self, schema: Registered) -> pa.Schema:
        if self.config.as_json:
            return COLUMNS
        return declared_columns(inline_references(schema, self.registry), self.config)

    def pinned(self, schema: Registered) -> Registered:
        text = json.dumps(strip_parsed_keys(inline_references(schema, self.registry)))
        return replace(schema, text=text, references=())

    def decoder(self, origin: Origin, writer: Registered, reader: Registered | None) -> Decode:
        writer_datum = inline_references(writer, self.registry)
        reader_datum, reader_name = self._reader(reader)
        same = reader_datum is None or reader_datum == writer_datum
        config = self.config
        options = {
            "type_column": config.type_column, "as_json": config.as_json,
            "conversion": config.conversion,
        }  # fmt: skip
        readers: dict[pa.Schema, RowReader] = {}

        def reader_of(schema: pa.Schema) -> RowReader:
            if schema not in readers:
                if not same and not self.config.as_json:
                    _check_time_units(writer_datum, reader_datum, schema, origin.id)
                readers[schema] = RowReader(
                    writer_datum, schema, reader=None if same else reader_datum, **options
                )
            return readers[schema]

        def convert_error(error: Exception) -> DecodeError:
            if isinstance(error, SchemaResolutionError):
                return _incompatible(f"schema {origin.id} cannot be read as {reader_name}: {error}")
            return avro.undecodable(error)

        def decode(payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
            row_reader = reader_of(schema)

            def attempt(part: pa.BinaryArray) -> pa.RecordBatch:
                values = [avro.value_of(body, 0, row_reader.read) for body in part.to_pylist()]
                return row_reader.rows(values)

            return decode_in_parts(payloads, schema, attempt, convert_error)

        return decode

    def _reader(self, pinned: Registered | None) -> tuple[Any, str]:
        """Returns the reader schema, if any, and its name in messages."""
        if self.datum is not None:
            return self.datum, "the configured schema"
        if pinned is None:
            return None, ""
        return avro.parse_schema(pinned.text), f"schema {pinned.id}, pinned by the first run"

    def encoder(self, columns: pa.Schema, schema: Registered | None) -> Encoder:
        datum = self.datum if self.datum is not None else avro_schema(columns)
        invalid = [name for name in columns.names if not _NAME.fullmatch(name)]
        if invalid:
            raise PlanError(
                f'"{invalid[0]}" is not a name in Avro: letters, digits and underscores',
                code="invalid-name",
            )
        if schema is not None:
            datum = inline_references(schema, self.registry)
        target, codec = arrow_schema(datum), avro.codec(datum)
        check_compatible(columns, target, "the Avro schema", self.config.conversion)

        def encode(rows: pa.RecordBatch) -> Encoded:
            def attempt(start: int, stop: int) -> pa.BinaryArray:
                part = conform(rows.slice(start, stop - start), target, self.config.conversion)
                values = avro.values_of(part)
                payloads = [avro.row_payload(value, codec, b"") for value in values]
                return pa.array(payloads, pa.binary())

            return collect_encoded(bisect_failures(rows.num_rows, attempt, avro.unencodable))

        return Encoder(encode, Draft(self.kind, json.dumps(strip_parsed_keys(datum))))


def _check_time_units(writer: Any, reader: Any, declared: pa.Schema, id_: int) -> None:
    """Raises DecodeError for times of different units, which Avro reads as equal numbers."""
    written, read = (pa.struct(list(arrow_schema(datum, declared))) for datum in (writer, reader))
    _check_units(written, read, id_)


def _check_units(writer: pa.DataType, reader: pa.DataType, id_: int) -> None:
    if pa.types.is_struct(writer) and pa.types.is_struct(reader):
        for field in writer:
            if reader.get_field_index(field.name) >= 0:
                _check_units(field.type, reader.field(field.name).type, id_)
    elif is_list(writer) and is_list(reader):
        _check_units(writer.value_type, reader.value_type, id_)
    elif pa.types.is_map(writer) and pa.types.is_map(reader):
        _check_units(writer.item_type, reader.item_type, id_)
    elif pa.types.is_temporal(writer) and pa.types.is_temporal(reader) and writer != reader:
        raise _incompatible(f"schema {id_} has {writer}, expected {reader}")


def _incompatible(message: str) -> DecodeError:
    return DecodeError(message, code="incompatible-schema")
