"""Keys of records and rows: columns of a tombstone, and primary keys with null."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import DecodeError, Rejected
from penstock.sdk import registry
from penstock.sdk.columns.binary_arrays import sort_failures
from penstock.sdk.record import Decoded, Failure

KEY = "record_key"
"""The column of a source with the keys of records (see `Source.deletes_by_key`)."""


def decode_keys(keys: pa.BinaryArray, format_: str, columns: pa.Schema) -> Decoded:
    """Returns the columns of keys, none of which is null.

    The format `text` has the values of the columns, joined by colons, as a sink writes them.
    `json` has an object, also in the wrapper of Kafka Connect.
    """
    parse = _json_object if format_ == "json" else _text_object
    texts: list[bytes] = []
    indexes: list[int] = []
    failures: list[Failure] = []
    for index, key in enumerate(keys.to_pylist()):
        try:
            texts.append(json.dumps(parse(key, columns.names)).encode())
            indexes.append(index)
        except (ValueError, RecursionError):
            failures.append(Failure(index, _error(key, format_, columns.names)))
    decoded = _decode_objects(texts, columns)
    failures += [Failure(indexes[failure.index], failure.error) for failure in decoded.failures]
    numbers = range(len(texts)) if decoded.index is None else decoded.index.to_pylist()
    origins = [indexes[number] for number in numbers]
    missing = pc.fill_null(_any_null(decoded.rows), False)
    failures += [
        Failure(origins[row], _error(keys[origins[row]].as_py(), format_, columns.names))
        for row in pc.indices_nonzero(missing).to_pylist()
    ]
    complete = pc.invert(missing)
    valid = pa.array(origins, pa.int64()).filter(complete)
    return Decoded(decoded.rows.filter(complete), valid, sort_failures(failures))


def split_null_keys(
    rows: pa.RecordBatch, key: Sequence[str]
) -> tuple[pa.BooleanArray, list[Failure]]:
    """Returns for each row whether its primary key has no null, and the errors of the others."""
    missing = _any_null(rows.select(list(key)))
    failures = []
    for index in pc.indices_nonzero(missing).to_pylist():
        names = [name for name in key if not rows.column(name)[index].is_valid]
        text = f"expected a value in the primary key, found null in {', '.join(names)}"
        failures.append(Failure(index, Rejected(text, code="null-key")))
    return pc.invert(missing), failures


def _decode_objects(texts: list[bytes], columns: pa.Schema) -> Decoded:
    json_type: Any = registry.find("format", "json")
    nullable = pa.schema([field.with_nullable(True) for field in columns])
    decoded: Decoded = json_type(json_type.config_type()).decode(
        pa.array(texts, pa.binary()), nullable
    )
    return decoded


def _json_object(key: bytes, names: Sequence[str]) -> dict[str, Any]:
    value = json.loads(key)
    if isinstance(value, dict) and isinstance(value.get("payload"), dict):
        value = value["payload"]
    if not isinstance(value, dict) and len(names) == 1:
        value = {names[0]: value}
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


def _text_object(key: bytes, names: Sequence[str]) -> dict[str, Any]:
    text = key.decode()
    parts = text.split(":") if len(names) > 1 else [text]
    if len(parts) != len(names):
        raise ValueError("another number of values")
    return dict(zip(names, parts, strict=True))


def _any_null(rows: pa.RecordBatch) -> pa.BooleanArray:
    """Returns for each row whether a column is null."""
    found = pa.repeat(pa.scalar(False), rows.num_rows)
    for column in rows.columns:
        found = pc.or_(found, column.is_null())
    return found


def _error(key: bytes, format_: str, names: Sequence[str]) -> DecodeError:
    shown = key[:100].decode(errors="replace")
    return DecodeError(
        f"expected a key with {', '.join(names)}, found {shown!r} ({format_})", code="invalid-key"
    )
