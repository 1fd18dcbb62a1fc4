"""Types of Debezium: times and decimals by the schema of Kafka Connect, and values not sent."""

from __future__ import annotations

import base64
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from test_avro_records import datums

from penstock.formats.debezium import (
    DebeziumAvro,
    DebeziumAvroConfig,
    DebeziumJson,
    DebeziumJsonConfig,
)
from penstock.formats.debezium.unavailable import PLACEHOLDER
from penstock.formats.json import Json, JsonConfig

UTC_TIME = pa.timestamp("us", "UTC")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROS = 1704164645678912
AT = EPOCH + timedelta(microseconds=MICROS)
IN_MILLIS = AT.replace(microsecond=678000)


def connect(name: str, type_: str, logical: str | None = None, **parameters: str) -> dict[str, Any]:
    more: dict[str, Any] = {"name": logical, "version": 1} if logical else {}
    more |= {"parameters": parameters} if parameters else {}
    return {"type": type_, "optional": True, "field": name, **more}


def encoded(unscaled: int) -> str:
    return base64.b64encode(unscaled.to_bytes(3, "big", signed=True)).decode()


D, C = "io.debezium.time.", "org.apache.kafka.connect.data."
FIELDS: list[tuple[dict[str, Any], Any, pa.DataType, Any]] = [
    (connect("id", "int32"), 1, pa.int32(), 1),
    (connect("day", "int32", f"{D}Date"), 19724, pa.date32(), date(2024, 1, 2)),
    (connect("day_c", "int32", f"{C}Date"), -1, pa.date32(), date(1969, 12, 31)),
    (connect("ms", "int64", f"{D}Timestamp"), MICROS // 1000, UTC_TIME, IN_MILLIS),
    (connect("ms_c", "int64", f"{C}Timestamp"), MICROS // 1000, UTC_TIME, IN_MILLIS),
    (connect("us", "int64", f"{D}MicroTimestamp"), MICROS, UTC_TIME, AT),
    (connect("ns", "int64", f"{D}NanoTimestamp"), MICROS * 1000 + 999, UTC_TIME, AT),
    (
        connect("old", "int64", f"{D}NanoTimestamp"), -1, UTC_TIME,
        EPOCH - timedelta(microseconds=1),
    ),
    (connect("zoned", "string", f"{D}ZonedTimestamp"), "2024-01-02T05:04:05.678912+02:00",
     UTC_TIME, AT),
    (connect("price", "bytes", f"{C}Decimal", scale="2"), encoded(-12345),
     pa.decimal128(10, 2), Decimal("-123.45")),
    (
        {**connect("any", "struct", "io.debezium.data.VariableScaleDecimal"), "fields": [
            connect("scale", "int32"), connect("value", "bytes")]},
        {"scale": 1, "value": encoded(75)}, pa.decimal128(10, 3), Decimal("7.500"),
    ),
    (
        {**connect("times", "array"), "items": connect("", "int64", f"{D}MicroTimestamp")},
        [MICROS, None], pa.list_(UTC_TIME), [AT, None],
    ),
    (connect("raw", "int64", f"{D}MicroTimestamp"), MICROS, pa.int64(), MICROS),
]  # fmt: skip
ROW = {field["field"]: value for field, value, _, _ in FIELDS}
EXPECTED = {field["field"]: expected for field, _, _, expected in FIELDS}
COLUMNS = pa.schema([(field["field"], type_) for field, _, type_, _ in FIELDS])
WITH_OPERATION = COLUMNS.append(pa.field("_op", pa.string()))
STRUCT = {"type": "struct", "optional": True, "fields": [field for field, *_ in FIELDS]}
ENVELOPE = {
    "type": "struct",
    "fields": [
        {**STRUCT, "field": "before"}, {**STRUCT, "field": "after"}, connect("op", "string"),
    ],
}  # fmt: skip


def wrapped(payload: Any, schema: Any = ENVELOPE, **options: Any) -> bytes:
    return json.dumps({"schema": schema, "payload": payload}, **options).encode()


def event(op: str, before: Any = None, after: Any = None) -> dict[str, Any]:
    return {"before": before, "after": after, "op": op}


def debezium(**options: Any) -> DebeziumJson:
    return DebeziumJson(DebeziumJsonConfig.model_validate({"nanoseconds": "truncate", **options}))


@pytest.mark.parametrize("separators", [(",", ":"), (" , ", " : ")])
def test_the_schema_beside_the_payload_has_the_units(separators: tuple[str, str]) -> None:
    payload = event("u", ROW, {**ROW, "id": 2})
    texts = [wrapped(payload, separators=separators)] * 3
    reordered = json.dumps({"payload": event("c", after=ROW), "schema": ENVELOPE}).encode()
    decoded = debezium().decode(pa.array([*texts, reordered]), WITH_OPERATION)
    assert not decoded.failures
    rows = decoded.rows.to_pylist()
    update = [{**EXPECTED, "_op": "ub"}, {**EXPECTED, "id": 2, "_op": "u"}]
    assert rows == [*update * 3, {**EXPECTED, "_op": "i"}]
    assert decoded.index.to_pylist() == [0, 0, 1, 1, 2, 2, 3]


def test_columns_of_the_schema() -> None:
    columns = debezium().infer_schema(pa.array([wrapped(event("c", after=ROW))]))
    assert columns is not None
    inferred = {name: columns.field(name).type for name in columns.names}
    other = {"price": pa.decimal128(38, 2), "any": pa.string(), "raw": UTC_TIME}
    assert inferred == {name: other.get(name, type_) for name, type_ in
                        zip(WITH_OPERATION.names, WITH_OPERATION.types, strict=True)}  # fmt: skip
    decoded = debezium().decode(pa.array([wrapped(event("c", after=ROW))]), columns)
    assert decoded.rows.column("us").to_pylist() == [AT]


@pytest.mark.parametrize(
    ("unit", "column", "fails"),
    [
        ("millis", "us", True),
        ("micros", "us", False),
        ("millis", "ms", False),
        ("micros", "ms", True),
    ],
)
def test_timestamps_with_another_unit_are_an_error(unit: str, column: str, fails: bool) -> None:
    schema = pa.schema([WITH_OPERATION.field(column), WITH_OPERATION.field("_op")])
    payloads = pa.array([wrapped(event("c", after=ROW))] * 2)
    decoded = debezium(timestamps=unit).decode(payloads, schema)
    codes = [failure.error.code for failure in decoded.failures]
    assert codes == (["wrong-unit"] * 2 if fails else [])
    assert decoded.rows.column(column).to_pylist() == ([] if fails else [EXPECTED[column]] * 2)


def test_values_out_of_range_are_failures_of_their_events() -> None:
    bad = [{**ROW, "us": 2**63}, {**ROW, "ms": 2**62}, {**ROW, "price": encoded(2**22)}]
    payloads = [wrapped(event("c", after=row)) for row in (ROW, bad[0], bad[1], ROW, bad[2], ROW)]
    narrow = WITH_OPERATION.set(
        COLUMNS.get_field_index("price"), pa.field("price", pa.decimal128(5, 2))
    )
    decoded = debezium().decode(pa.array(payloads), narrow)
    assert [failure.index for failure in decoded.failures] == [1, 2, 4]
    assert decoded.rows.num_rows == 3 and decoded.index.to_pylist() == [0, 3, 5]


def test_nanoseconds_are_truncated_by_an_option_only() -> None:
    schema = pa.schema([WITH_OPERATION.field("ns"), WITH_OPERATION.field("_op")])
    payloads = pa.array([wrapped(event("c", after=ROW))])
    (failure,) = debezium(nanoseconds="reject").decode(payloads, schema).failures
    assert "nanoseconds: truncate" in str(failure.error.hint)


def test_records_with_and_without_a_wrapper() -> None:
    schema = pa.schema([("id", pa.int32()), ("day", pa.date32()), ("_op", pa.string())])
    texts = [
        json.dumps(event("c", after={"id": 1, "day": 1})).encode(),
        wrapped(event("c", after={"id": 2, "day": 2})),
        wrapped(event("c", after={"id": 3, "day": 3}), None),
        b'{"payload"', json.dumps(event("c", after={"id": 5, "day": "1970-01-06"})).encode(),
        wrapped(None), wrapped(event("c", after={"id": 7, "day": 1.5})),
    ]  # fmt: skip
    decoded = debezium().decode(pa.array(texts), schema)
    days = [(row["id"], row["day"].day) for row in decoded.rows.to_pylist()]
    assert days == [(1, 2), (2, 3), (3, 4), (5, 6)]
    assert [failure.index for failure in decoded.failures] == [3, 5, 6]


def test_the_wrapper_of_the_format_json() -> None:
    payloads = pa.array([wrapped(ROW, STRUCT)])
    decoded = Json(JsonConfig(wrapper="connect", nanoseconds="truncate")).decode(payloads, COLUMNS)
    assert decoded.rows.to_pylist() == [EXPECTED]


UNKNOWN = {"text": PLACEHOLDER, "tags": [PLACEHOLDER], "pairs": {PLACEHOLDER: PLACEHOLDER},
           "bytes": base64.b64encode(PLACEHOLDER.encode()).decode(),
           "numbers": list(PLACEHOLDER.encode())}  # fmt: skip
KNOWN = {"text": "t", "tags": ["a", PLACEHOLDER], "pairs": {"k": "v"}, "bytes": "eA==",
         "numbers": [1]}  # fmt: skip
TOAST = pa.schema(
    [
        ("id", pa.int32()),
        ("text", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("pairs", pa.map_(pa.string(), pa.string())),
        ("bytes", pa.binary()),
        ("numbers", pa.list_(pa.int32())),
        ("_op", pa.string()),
    ]
)
PLAIN = {**KNOWN, "pairs": [("k", "v")], "bytes": b"x"}


def toast(unavailable: str | None, *events: Any) -> tuple[list[Any], list[tuple[int, str]]]:
    payloads = pa.array([json.dumps(each).encode() for each in events])
    decoded = debezium(unavailable=unavailable).decode(payloads, TOAST)
    failures = [(failure.index, failure.error.code) for failure in decoded.failures]
    return decoded.rows.to_pylist(), failures


def test_a_value_that_was_not_sent_is_that_of_the_row_before() -> None:
    update = event("u", {"id": 1, **KNOWN}, {"id": 1, **UNKNOWN})
    rows, failures = toast("reject", update, event("c", after={"id": 2, **KNOWN}))
    assert failures == []
    assert rows == [
        {"id": 1, **PLAIN, "_op": "ub"}, {"id": 1, **PLAIN, "_op": "u"},
        {"id": 2, **PLAIN, "_op": "i"},
    ]  # fmt: skip


@pytest.mark.parametrize("before", [None, {"id": 1}, {"id": 1, **UNKNOWN}])
def test_a_value_that_is_not_known_is_a_bad_record_or_null(before: Any) -> None:
    updates = (event("u", before, {"id": 1, **UNKNOWN}), event("c", after={"id": 2, **KNOWN}))
    rows, failures = toast("reject", *updates)
    assert [row["id"] for row in rows] == [2] and failures == [(0, "unavailable-value")]
    for option in ("null", None):
        rows, failures = toast(option, *updates)
        nulls = {**dict.fromkeys(KNOWN), "id": 1}
        expected = [{**nulls, "_op": "ub"}] if before else []
        assert rows == [*expected, {**nulls, "_op": "u"}, {"id": 2, **PLAIN, "_op": "i"}]
        assert failures == []


def test_names_of_connect_in_avro() -> None:
    def number(name: str, kind: str) -> dict[str, Any]:
        return {"name": name.lower(), "type": {"type": kind, "connect.name": f"{D}{name}"}}

    value = {
        "type": "record", "name": "Value",
        "fields": [
            number("Date", "int"), number("Timestamp", "long"), number("MicroTimestamp", "long"),
            number("NanoTimestamp", "long"),
        ],
    }  # fmt: skip
    schema = {
        "type": "record", "name": "Envelope",
        "fields": [
            {"name": "before", "type": ["null", value], "default": None},
            {"name": "after", "type": ["null", "Value"], "default": None},
            {"name": "op", "type": "string"},
        ],
    }  # fmt: skip
    format_ = DebeziumAvro(
        DebeziumAvroConfig.model_validate({"schema": schema, "nanoseconds": "truncate"})
    )
    row = {
        "date": 19724, "timestamp": MICROS // 1000, "microtimestamp": MICROS,
        "nanotimestamp": MICROS * 1000 + 1,
    }  # fmt: skip
    assert fastavro.parse_schema(schema)
    payloads = datums(schema, {"before": None, "after": row, "op": "c"})
    columns = format_.declared_schema()
    assert columns is not None
    (found,) = format_.decode(payloads, columns).rows.to_pylist()
    assert found == {
        "date": date(2024, 1, 2), "timestamp": IN_MILLIS, "microtimestamp": AT,
        "nanotimestamp": AT, "_op": "i",
    }  # fmt: skip
    raw = pa.schema([("microtimestamp", pa.int64()), ("_op", pa.string())])
    assert format_.decode(payloads, raw).rows.column(0).to_pylist() == [MICROS]
