"""Decimals of JSON as texts and bytes, and the wrapper of Kafka Connect."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from penstock.formats.debezium import DebeziumJson, DebeziumJsonConfig
from penstock.formats.json import Json, JsonConfig

SCHEMA = pa.schema(
    [("id", pa.int64()), ("d", pa.decimal128(38, 2)), ("l", pa.list_(pa.decimal128(20, 9)))]
)
LARGE = [Decimal("9" * 36 + ".99"), Decimal("-" + "9" * 36 + ".99")]
VALUES = [Decimal("12.50"), Decimal("-1.28"), Decimal("0.00"), *LARGE, None]


def make(**options: Any) -> Any:
    return Json.create(JsonConfig.model_validate(options))


def rows(*values: Decimal | None) -> pa.RecordBatch:
    listed = [Decimal("0.000000001"), None]
    return pa.RecordBatch.from_pylist([{"id": 1, "d": v, "l": listed} for v in values], SCHEMA)


def encoded(format_: Any, batch: pa.RecordBatch) -> list[bytes]:
    found: list[bytes] = format_.encode(batch).payloads.to_pylist()
    return found


def test_decimals_as_text() -> None:
    assert encoded(make(decimals="string"), rows(Decimal("12.50"), None)) == [
        b'{"id":1,"d":"12.50","l":["0.000000001",null]}',
        b'{"id":1,"l":["0.000000001",null]}',
    ]


def test_decimals_as_bytes() -> None:
    """The texts of Java's BigInteger.toByteArray in base64."""
    expected = [b"BOI=", b"gA==", b"AA=="]
    found = encoded(make(decimals="bytes"), rows(*VALUES[:3]))
    assert found == [b'{"id":1,"d":"%b","l":["AQ==",null]}' % text for text in expected]


@pytest.mark.parametrize("form", ["number", "string", "bytes"])
@pytest.mark.parametrize("wrapper", ["none", "connect"])
@pytest.mark.parametrize("unknown", ["ignore", "reject"])
def test_written_decimals_are_read(form: str, wrapper: str, unknown: str) -> None:
    format_ = make(decimals=form, wrapper=wrapper, unknown=unknown)
    batch = rows(*VALUES)
    decoded = format_.decode(format_.encode(batch).payloads, SCHEMA)
    assert decoded.failures == []
    assert decoded.rows.to_pylist() == batch.to_pylist()


@pytest.mark.parametrize(
    "text",
    [b'"12.5"', b'""', b'"AAAAAAAAAAAAAAAAAAAAAAA="', b'"f////////////////////w=="', b"true"],
)
def test_other_texts_are_no_bytes_of_a_decimal(text: bytes) -> None:
    payloads = pa.array([b'{"d":%b}' % text, b'{"d":"BOI="}', b'{"d":1.5}'], pa.binary())
    decoded = make(decimals="bytes").decode(payloads, SCHEMA)
    assert [failure.index for failure in decoded.failures] == [0]
    assert "is not a DECIMAL(38, 2)" in str(decoded.failures[0].error)
    assert decoded.rows.column("d").to_pylist() == [Decimal("12.50"), Decimal("1.50")]


TYPED = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False),
        ("d", pa.decimal128(10, 2)),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
ENVELOPE = (
    b'{"schema":{"type":"struct","optional":false,"fields":['
    b'{"type":"int32","optional":false,"field":"id"},'
    b'{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","version":1,'
    b'"parameters":{"scale":"2","connect.decimal.precision":"10"},"optional":true,"field":"d"},'
    b'{"type":"int64","name":"org.apache.kafka.connect.data.Timestamp","version":1,'
    b'"optional":true,"field":"at"}]},'
    b'"payload":{"id":1,"d":"BOI=","at":1500}}'
)


def typed() -> pa.RecordBatch:
    arrays = [[1], [Decimal("12.50")], pa.array([1_500_900]).cast(TYPED.types[2])]
    return pa.RecordBatch.from_arrays([*map(pa.array, arrays[:2]), arrays[2]], TYPED.names).cast(
        TYPED
    )


def test_wrapper_of_kafka_connect() -> None:
    format_ = make(decimals="bytes", timestamps="millis", wrapper="connect")
    assert encoded(format_, typed()) == [ENVELOPE]


def test_types_of_texts_in_the_wrapper() -> None:
    (text,) = encoded(make(decimals="string", wrapper="connect"), typed())
    types = [field["type"] for field in json.loads(text)["schema"]["fields"]]
    assert types == ["int32", "string", "string"]


def test_payloads_of_the_wrapper_are_read() -> None:
    payloads = pa.array(
        [
            b'{"schema":{"a":[1]},"payload":{"id":1}}',
            b'{"id":2}',
            b'{"payload":{"id":"x"}}',
            b'{"payload":{}}',
        ],
        pa.binary(),
    )
    decoded = make(wrapper="connect").decode(payloads, TYPED)
    assert decoded.rows.column("id").to_pylist() == [1]
    assert [str(failure.error) for failure in decoded.failures] == [
        'column "payload" is null; expected a value',
        'column "id": "x" is not an INT',
        'column "id" is null; expected a value',
    ]


def test_columns_of_the_wrapper_are_inferred() -> None:
    sample = pa.array([b'{"schema":null,"payload":{"a":1}}', b"x", None], pa.binary())
    assert make(wrapper="connect").infer_schema(sample) == pa.schema([("a", pa.int64())])


def test_wrapped_events_have_the_types_of_their_values() -> None:
    config = DebeziumJsonConfig(wrapper="connect", decimals="bytes", timestamps="millis")
    format_ = DebeziumJson(config)
    (text,) = encoded(format_, typed())
    event = json.loads(text)
    after = event["schema"]["fields"][1]
    assert after["field"] == "after"
    assert after["fields"][1:] == json.loads(ENVELOPE)["schema"]["fields"][1:]
    assert event["payload"]["after"] == {"id": 1, "d": "BOI=", "at": 1500}
    decoded = format_.decode(
        pa.array([text], pa.binary()), TYPED.append(pa.field("_op", pa.string()))
    )
    assert decoded.rows.column("d").to_pylist() == [Decimal("12.50")]
