"""One datum of Avro: its schema, and rows from it and to it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
from fastavro.schema import SchemaParseException

from penstock.core.errors import DecodeError, EncodeError, PlanError
from penstock.sdk.kit.avrotypes import arrow_schema, from_arrow, to_arrow, without_times
from penstock.sdk.kit.columns import reason


def given(datum: Any, schema_file: str | None) -> Any:
    """The parsed schema that the options give, if they do. Raises PlanError."""
    if schema_file is not None:
        try:
            datum = Path(schema_file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            message = f"cannot read {schema_file}: {error}"
            raise PlanError(message, code="unreadable-file") from error
    if datum is None:
        return None
    found = parsed(datum)
    arrow_schema(found)
    return found


def parsed(datum: Any, named: dict[str, Any] | None = None) -> Any:
    """A schema as fastavro wants it, of text or JSON; `named` are types that it may mention."""
    try:
        plain = json.loads(datum) if isinstance(datum, str) else datum
        return fastavro.parse_schema(plain, named_schemas={} if named is None else named)
    except (ValueError, SchemaParseException, KeyError, TypeError, AttributeError) as error:
        message = f"not an Avro schema: {reason(error)}"
        raise PlanError(message, code="invalid-schema") from error


def codec(datum: Any) -> Any:
    """The schema by which values are read and written: times are numbers."""
    return fastavro.parse_schema(without_times(datum))


def value_of(payload: bytes, header: int, writer: Any, reader: Any = None) -> Any:
    """The value behind a header. Raises DecodeError for what is left over."""
    stream = io.BytesIO(payload)
    stream.seek(header)
    value = fastavro.schemaless_reader(stream, writer, reader)
    left = len(payload) - stream.tell()
    if left:
        raise DecodeError(f"not Avro of this schema: {left:,} bytes left over", code="not-avro")
    return value


def payload_of(value: dict[str, Any], writer: Any, header: bytes) -> bytes:
    """A value behind a header."""
    out = io.BytesIO()
    out.write(header)
    fastavro.schemaless_writer(out, writer, value)
    return out.getvalue()


def rows_of(values: list[Any], whole: pa.Schema) -> pa.RecordBatch:
    """Values of a record as rows."""
    columns = [to_arrow([value[f.name] for value in values], f.type) for f in whole]
    return pa.RecordBatch.from_arrays(columns, schema=whole)


def values_of(rows: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Rows as values of a record."""
    names = rows.schema.names
    for values in zip(*map(from_arrow, rows.columns), strict=True):
        yield dict(zip(names, values, strict=True))


def undecodable(error: Exception) -> DecodeError:
    """Why a datum gives no row."""
    if isinstance(error, pa.ArrowInvalid):
        return DecodeError(reason(error), code="wrong-type")
    why = "it ends too early" if isinstance(error, EOFError) else reason(error)
    return DecodeError(f"not Avro of this schema: {why}", code="not-avro")


def unencodable(error: Exception) -> EncodeError:
    """Why a row gives no datum."""
    return EncodeError(f"the row does not fit the Avro schema: {reason(error)}")
