"""Records without a value as deletes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.kafka import KafkaSource
from penstock.formats.debezium import DebeziumJson, DebeziumJsonConfig
from penstock.formats.json import Json, JsonConfig
from penstock.sdk.record import Rows
from penstock.sdk.tombstones import decode_with_deletes

COLUMNS = pa.schema(
    [("region", pa.string()), ("id", pa.int32()), ("name", pa.string()), ("_op", pa.string())]
)
Record = tuple[bytes | None, bytes | None]


def decoded(
    records: list[Record], key: tuple[str, ...] = ("id",), format_: Any = None, **options: Any
) -> Rows:
    """Decodes pairs of key and value."""
    options = {"brokers": "localhost:1", "topic": "t", "tombstones": "delete", **options}
    source = KafkaSource(KafkaSource.config_type.model_validate(options))
    source.format = format_ or Json(JsonConfig())
    source.columns, source.primary_key = COLUMNS, key
    keys, values = (pa.array(each, pa.binary()) for each in zip(*records, strict=True))
    batch = pa.RecordBatch.from_arrays([values, keys], names=["payload", "record_key"])
    return decode_with_deletes(source, batch, type(source.format).rows)


def shown(rows: pa.RecordBatch) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in rows.to_pylist()]


def test_a_tombstone_deletes_by_key() -> None:
    value = b'{"region": "eu", "id": 1, "name": "a"}'
    rows = decoded([(b"2", None), (b"1", value), (b"1", None), (b"x", value), (None, None)])
    updated = ("eu", 1, "a", "u")
    assert shown(rows.rows) == [(None, 2, None, "d"), updated, (None, 1, None, "d"), updated]
    assert rows.index.to_pylist() == [0, 1, 2, 3]
    assert [(failure.index, failure.error.code) for failure in rows.failures] == [(4, "no-value")]


@pytest.mark.parametrize(
    ("format_", "key", "row"),
    [
        ("text", b"eu:7", ("eu", 7, None, "d")),
        ("json", b'{"id": 7, "region": "eu"}', ("eu", 7, None, "d")),
        ("json", b'{"schema": {}, "payload": {"id": 7, "region": "eu"}}', ("eu", 7, None, "d")),
        ("text", b"eu:7:8", "invalid-key"),
        ("text", b"eu:x", "wrong-type"),
        ("text", b"\xff:1", "invalid-key"),
        ("json", b"eu:7", "invalid-key"),
        ("json", b"7", "invalid-key"),
        ("json", b'{"id": 7}', "invalid-key"),
    ],
)
def test_keys_of_several_columns(format_: str, key: bytes, row: Any) -> None:
    rows = decoded([(b"", b"{}"), (key, None)], ("region", "id"), key_format=format_)
    codes = [failure.error.code for failure in rows.failures]
    assert (shown(rows.rows)[1:] or codes) == [row]
    assert all(failure.index == 1 for failure in rows.failures)


def test_a_key_of_json_is_a_value() -> None:
    rows = decoded([(b"7", None), (b'"x"', None)], key_format="json")
    assert shown(rows.rows) == [(None, 7, None, "d")]
    assert [failure.error.code for failure in rows.failures] == ["wrong-type"]


def test_events_keep_their_operations() -> None:
    event = b'{"op": "c", "after": {"id": 1, "name": "a"}}'
    format_ = DebeziumJson(DebeziumJsonConfig())
    rows = decoded([(b"1", event), (b"1", None)], format_=format_)
    assert shown(rows.rows) == [(None, 1, "a", "i"), (None, 1, None, "d")]
