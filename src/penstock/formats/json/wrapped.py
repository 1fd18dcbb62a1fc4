"""Records in the JSON wrapper of Kafka Connect, read by the schema beside their payload."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.core.errors import DecodeError
from penstock.formats.json.connect_types import Schema, SchemaValues, columns_of
from penstock.sdk.bisect_failures import bisect_failures
from penstock.sdk.columns.binary_arrays import sort_failures
from penstock.sdk.columns.conform import (
    collect_decoded,
    concat_batches,
    decode_error,
)
from penstock.sdk.columns.conversion import Conversion
from penstock.sdk.record import Decoded, Failure

_INVALID = (
    ArithmeticError, AttributeError, LookupError, StopIteration, TypeError, ValueError,
    pa.ArrowException,
)  # fmt: skip
"""Errors of Python for a schema of another form."""
_SPACE = b" \t\r\n"
_scan = json.JSONDecoder().raw_decode


class Record(NamedTuple):
    """The payload of a record, and its schema, if there is one."""

    schema: Schema | None
    payload: bytes


class Wrappers:
    """A splitter of records. Equal schemas at the start of records are parsed once."""

    def __init__(self) -> None:
        self._prefix = b""
        self._schema: Schema | None = None

    def split(self, text: bytes) -> Record | None:
        """Returns the record of a text; None for a text without a wrapper."""
        text = text.strip(_SPACE)
        if self._prefix and text.startswith(self._prefix) and text.endswith(b"}"):
            return Record(self._schema, text[len(self._prefix) : -1])
        try:
            members = _members(text.decode())
        except (ValueError, IndexError, RecursionError):
            return None
        payload = members.get("payload")
        if payload is None or payload.text == "null" or "op" in members:
            return None
        schema = members.get("schema")
        value = json.loads(schema.text) if schema is not None else None
        known = value if isinstance(value, dict) and value.get("type") == "struct" else None
        if list(members) == ["schema", "payload"]:
            self._prefix, self._schema = text[: -len(payload.text.encode()) - 1].rstrip(), known
            if self._prefix + payload.text.encode() + b"}" != text:
                self._prefix = b""
        return Record(known, payload.text.encode())


def columns_of_schemas(texts: Iterable[bytes], *path: str) -> pa.Schema | None:
    """Returns the columns of the first schema among records, of the field at `path`; or None."""
    wrappers = Wrappers()
    for record in map(wrappers.split, texts):
        try:
            if record is None or record.schema is None:
                continue
            schema = record.schema
            for name in path:
                schema = next(each for each in schema["fields"] if each["field"] == name)
            return columns_of(schema)
        except _INVALID:
            continue
    return None


class _Member(NamedTuple):
    text: str


def _members(text: str) -> dict[str, _Member]:
    """Returns the values of an object as texts. Raises ValueError or IndexError."""
    members: dict[str, _Member] = {}
    position = _skip(text, 1)
    if text[:1] != "{":
        raise ValueError("not an object")
    while text[position] != "}":
        name, position = _scan(text, position)
        position = _skip(text, position)
        if text[position] != ":":
            raise ValueError("expected a colon")
        start = _skip(text, position + 1)
        _, position = _scan(text, start)
        members[name] = _Member(text[start:position])
        position = _skip(text, position)
        if text[position] == ",":
            position = _skip(text, position + 1)
    if position != len(text) - 1:
        raise ValueError("text after the end")
    return members


def _skip(text: str, position: int) -> int:
    while text[position] in " \t\r\n":
        position += 1
    return position


def decode_wrapped(
    texts: pa.BinaryArray,
    columns: pa.Schema,
    conversion: Conversion,
    decode_typed: Callable[[pa.BinaryArray, pa.Schema], Decoded],
    decode_payload: Callable[[pa.BinaryArray], Decoded],
    decode_other: Callable[[pa.BinaryArray], Decoded],
) -> Decoded:
    """Decodes texts to one row of `columns` each. No text may be null.

    The payload of a record with a schema is decoded by `decode_typed`, to columns of the types that
    the schema has, that of other records by `decode_payload`. `decode_other` decodes other texts.
    """
    wrappers = Wrappers()
    schemas: list[Schema | None] = []
    groups: dict[int, tuple[list[int], list[bytes]]] = {}
    for index, text in enumerate(texts.to_pylist()):
        record = wrappers.split(text)
        key, body = (-2, text) if record is None else (-1, record.payload)
        if record is not None and record.schema is not None:
            known = (n for n, schema in enumerate(schemas) if schema == record.schema)
            key = next(known, len(schemas))
            schemas += [record.schema] if key == len(schemas) else []
        indexes, bodies = groups.setdefault(key, ([], []))
        indexes.append(index)
        bodies.append(body)
    parts: list[tuple[np.ndarray, Decoded]] = []
    for key, (indexes, bodies) in groups.items():
        payloads = pa.array(bodies, pa.binary())
        if key < 0:
            decoded = decode_other(payloads) if key == -2 else decode_payload(payloads)
        else:
            schema: Any = schemas[key]
            decoded = _decode_typed(payloads, schema, columns, conversion, decode_typed)
        parts.append((np.array(indexes, np.int64), decoded))
    return _merged(parts, columns)


def _decode_typed(
    payloads: pa.BinaryArray,
    schema: Schema,
    columns: pa.Schema,
    conversion: Conversion,
    decode: Callable[[pa.BinaryArray, pa.Schema], Decoded],
) -> Decoded:
    try:
        values = SchemaValues.create(schema, columns, conversion)
    except (DecodeError, *_INVALID) as error:
        if not isinstance(error, DecodeError):
            error = DecodeError(f"not a schema of Kafka Connect: {error}", code="invalid-schema")
        failures = [Failure(index, error) for index in range(len(payloads))]
        return Decoded(concat_batches([], columns), pa.array([], pa.int64()), failures)
    rows, index, undecodable = decode(payloads, values.physical)

    def attempt(start: int, stop: int) -> pa.RecordBatch:
        return values.convert(rows.slice(start, stop - start))

    def to_error(error: Exception) -> DecodeError:
        return decode_error(error)

    converted = collect_decoded(bisect_failures(rows.num_rows, attempt, to_error), columns)
    places = np.arange(rows.num_rows) if index is None else index.to_numpy()
    bad = [Failure(int(places[failure.index]), failure.error) for failure in converted.failures]
    if converted.index is not None:
        places = places[converted.index.to_numpy()]
    return Decoded(converted.rows, pa.array(places, pa.int64()), [*undecodable, *bad])


def _merged(parts: list[tuple[np.ndarray, Decoded]], columns: pa.Schema) -> Decoded:
    """Returns the rows and failures of all parts in the order of their texts."""
    failures: list[Failure] = []
    places: list[np.ndarray] = []
    for indexes, decoded in parts:
        failures += [Failure(int(indexes[f.index]), f.error) for f in decoded.failures]
        places.append(indexes if decoded.index is None else indexes[decoded.index.to_numpy()])
    rows = concat_batches([decoded.rows for _, decoded in parts], columns)
    index = np.concatenate(places) if places else np.array([], np.int64)
    order = pa.array(np.argsort(index, kind="stable"))
    rows = rows if len(parts) < 2 else rows.take(order)
    return Decoded(rows, pa.array(np.sort(index)), sort_failures(failures))
