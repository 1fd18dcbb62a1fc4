"""Avro datums: schemas, and conversion from and to rows."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import fastavro
import pyarrow as pa
from fastavro.schema import SchemaParseException

from penstock.core.errors import DecodeError, EncodeError, OptionError, PlanError
from penstock.core.files.regular_files import check_regular_file
from penstock.sdk.columns.avro_schemas import records_of, without_times
from penstock.sdk.columns.avro_values import from_arrow
from penstock.sdk.columns.conform import decode_error, error_text
from penstock.sdk.columns.schema_errors import invalid_schema

T = TypeVar("T")


def configured_schema(datum: Any, schema_file: str | None, *, any_type: bool = False) -> Any:
    """Returns the parsed schema of the options, if any: of records, or of any type.

    Raises PlanError.
    """
    if schema_file is not None:
        try:
            check_regular_file(Path(schema_file))
            datum = Path(schema_file).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise OptionError.of(
                "schema_file",
                message=f"cannot read {schema_file}: {reason}",
                code="unreadable-file",
                hint="Set schema_file to a file with an Avro schema in JSON.",
            ) from error
    if datum is None:
        return None
    schema = parse_schema(datum)
    if not any_type:
        records_of(schema)
    return schema


def parse_schema(datum: Any, named: dict[str, Any] | None = None) -> Any:
    """Parses a schema given as text or JSON. `named` are the types of references."""
    try:
        schema = json.loads(datum) if isinstance(datum, str) else datum
        return fastavro.parse_schema(schema, named_schemas={} if named is None else named)
    except (ValueError, SchemaParseException, KeyError, TypeError, AttributeError) as error:
        message = f"not an Avro schema: {error_text(error)}"
        raise PlanError(message, code="invalid-schema") from error


@invalid_schema("Avro schema")
def codec(datum: Any) -> Any:
    """Returns the schema for reading and writing: times are numbers."""
    return fastavro.parse_schema(without_times(datum))


def value_of(payload: bytes, header: int, read: Callable[[BinaryIO], T]) -> T:
    """Reads the value after a header. Raises DecodeError for trailing bytes."""
    stream = io.BytesIO(payload)
    stream.seek(header)
    value = read(stream)
    trailing = len(payload) - stream.tell()
    if trailing:
        raise DecodeError(f"not Avro of this schema: {trailing:,} trailing bytes", code="not-avro")
    return value


def row_payload(value: dict[str, Any], writer: Any, header: bytes) -> bytes:
    """Encodes a value after a header."""
    out = io.BytesIO()
    out.write(header)
    fastavro.schemaless_writer(out, writer, value)
    return out.getvalue()


def values_of(rows: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Converts rows to record values."""
    names = rows.schema.names
    for values in zip(*map(from_arrow, rows.columns), strict=True):
        yield dict(zip(names, values, strict=True))


def undecodable(error: Exception) -> DecodeError:
    """Returns the error of a datum that cannot be decoded."""
    if isinstance(error, DecodeError):
        return error
    if isinstance(error, pa.ArrowInvalid):
        return decode_error(error)
    if isinstance(error, RecursionError):
        return DecodeError("not Avro: nested too deeply", code="too-deep")
    reason = "unexpected end" if isinstance(error, EOFError) else error_text(error)
    return DecodeError(f"not Avro of this schema: {reason}", code="not-avro")


def unencodable(error: Exception) -> EncodeError:
    """Returns the error of a row that cannot be encoded."""
    return EncodeError(f"the row does not fit the Avro schema: {error_text(error)}")
