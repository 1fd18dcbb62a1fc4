"""Change events of Debezium, as JSON and Avro."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from penstock.core.errors import PenstockError
from penstock.formats.debezium import (
    DebeziumAvro,
    DebeziumAvroConfig,
    DebeziumJson,
    DebeziumJsonConfig,
)
from penstock.sdk import Format, Read

COLUMNS = pa.schema([("id", pa.int32()), ("name", pa.string()), ("_op", pa.string())])
ANN, BOB = {"id": 1, "name": "ann"}, {"id": 2, "name": "bob"}
DATUM = {
    "type": "record", "name": "Envelope", "namespace": "shop.customers", "fields": [
        {"name": "before", "default": None, "type": ["null", {
            "type": "record", "name": "Value", "fields": [
                {"name": "id", "type": "int"},
                {"name": "name", "type": ["null", "string"], "default": None},
            ]}]},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {"name": "source", "type": {"type": "record", "name": "Source", "fields": [
            {"name": "lsn", "type": ["null", "long"], "default": None}]}},
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"], "default": None},
    ],
}  # fmt: skip


def debezium_json(**options: Any) -> DebeziumJson:
    return DebeziumJson(DebeziumJsonConfig.model_validate(options))


def event(op: str, before: Any = None, after: Any = None, **fields: Any) -> dict[str, Any]:
    return {"before": before, "after": after, "op": op, **fields}


def payloads(*events: Any) -> pa.BinaryArray:
    texts = [each if each is None or isinstance(each, bytes) else json.dumps(each).encode()
             for each in events]  # fmt: skip
    return pa.array(texts, pa.binary())


def changes(*rows: tuple[str, dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{**row, "_op": op} for op, row in rows], schema=COLUMNS)


def shown(rows: pa.RecordBatch) -> list[tuple[Any, ...]]:
    return [(row["_op"], row["id"], row["name"]) for row in rows.to_pylist()]


def written(format_: Format[Any], rows: pa.RecordBatch) -> list[Any]:
    return [json.loads(payload) for payload in format_.encode(rows).payloads.to_pylist()]


def test_events_are_changes() -> None:
    events = payloads(
        event("r", after=ANN), event("c", after=BOB),
        event("u", before=ANN, after={**ANN, "name": "a"}), event("u", after=BOB),
        None, event("d", before=BOB),
    )  # fmt: skip
    rows, index, failures = debezium_json().decode(events, COLUMNS)
    assert shown(rows) == [
        ("i", 1, "ann"), ("i", 2, "bob"), ("ub", 1, "ann"), ("u", 1, "a"), ("u", 2, "bob"),
        ("d", 2, "bob"),
    ]  # fmt: skip
    assert (index.to_pylist(), failures) == ([0, 1, 2, 2, 3, 5], [])


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (event("t"), "unknown-operation"),
        (event("d"), "no-before"),
        (event("d", after=ANN), "no-before"),
        (event("c", before=ANN), "no-after"),
        ({"id": 1, "name": "ann"}, "no-change"),
        (event("c", after={"id": "x"}), "wrong-type"),
        (b"{", "not-json"),
        ([1], "not-an-object"),
        (b"", "no-value"),
        (event("c", after=ANN, ts_ms=2**62), "invalid-timestamp"),
    ],
    ids=[
        "truncate",
        "before",
        "before only",
        "after",
        "row",
        "type",
        "json",
        "array",
        "empty",
        "time",
    ],
)
def test_a_bad_event_is_a_failure(payload: Any, code: str) -> None:
    events = payloads(None, event("c", after=ANN), payload, event("d", before=BOB))
    schema = COLUMNS.append(pa.field("at", pa.timestamp("us", tz="UTC")))
    rows, index, failures = debezium_json(time_column="at").decode(events, schema)
    assert shown(rows) == [("i", 1, "ann"), ("d", 2, "bob")] and index.to_pylist() == [1, 3]
    assert [(failure.index, failure.error.code) for failure in failures] == [(2, code)]


def test_the_wrapper_of_kafka_connect() -> None:
    wrapped = {"schema": {"type": "struct", "fields": []}, "payload": event("c", after=ANN)}
    plain = event("c", after={"id": 2, "name": '"payload"'})
    rows = debezium_json().decode(payloads(wrapped, plain), COLUMNS).rows
    assert shown(rows) == [("i", 1, "ann"), ("i", 2, '"payload"')]


def test_the_wrapper_is_written() -> None:
    format_ = debezium_json(wrapper="connect")
    (found,) = written(format_, changes(("i", ANN)))
    assert found["payload"] == event("c", after=ANN)
    names = {field["field"]: field["type"] for field in found["schema"]["fields"]}
    assert names == {"before": "struct", "after": "struct", "op": "string"}
    row = found["schema"]["fields"][1]["fields"]
    assert [(field["field"], field["type"]) for field in row] == [
        ("id", "int32"),
        ("name", "string"),
    ]
    assert shown(format_.decode(payloads(found), COLUMNS).rows) == [("i", 1, "ann")]


def test_time_and_source_are_columns() -> None:
    format_ = debezium_json(time_column="at", source_column="origin")
    at = pa.timestamp("us", tz="UTC")
    schema = pa.schema([*COLUMNS, ("at", at), ("origin", pa.string())])
    origin = {"table": "customers", "lsn": 7}
    original = event("u", ANN, BOB, source=origin, ts_ms=1704067200123)
    rows = format_.decode(payloads(original), schema).rows
    time = datetime(2024, 1, 1, 0, 0, 0, 123_000, tzinfo=UTC)
    assert rows.column("at").to_pylist() == [time, time]
    assert json.loads(rows.column("origin")[0].as_py()) == origin
    assert written(format_, rows) == [original]
    assert format_.infer_schema(payloads(original)).names == ["id", "name", "_op", "at", "origin"]


def test_written_milliseconds_are_whole_numbers() -> None:
    at = pa.timestamp("us", "UTC")
    columns = pa.schema([("id", pa.int32()), ("times", pa.list_(at)), ("_op", pa.string())])
    time = datetime(2024, 1, 2, 3, 4, 5, 678912, tzinfo=UTC)
    rows = pa.RecordBatch.from_pylist([{"id": 1, "times": [time, None], "_op": "i"}], columns)
    (payload,) = debezium_json(timestamps="millis").encode(rows).payloads.to_pylist()
    assert json.loads(payload)["after"] == {"id": 1, "times": [1704164645678, None]}
    assert b"1704164645678," in payload


def test_changes_are_events() -> None:
    new, moved = {"id": 1, "name": "new"}, {"id": 3, "name": "ann"}
    format_ = debezium_json()
    format_.primary_key = ("id",)
    rows = changes(
        ("i", ANN), ("ub", ANN), ("u", new), ("u", BOB), ("ub", ANN), ("u", moved), ("ub", ANN),
        ("d", new), ("d", BOB), ("ub", BOB),
    )  # fmt: skip
    encoded = format_.encode(rows)
    assert [json.loads(payload) for payload in encoded.payloads.to_pylist()] == [
        event("c", None, ANN), event("u", ANN, new), event("u", None, BOB),
        event("d", ANN), event("c", None, moved), event("d", ANN), event("d", BOB),
        event("d", BOB),
    ]  # fmt: skip
    assert encoded.index.to_pylist() == [0, 2, 3, 4, 5, 7, 8, 9]


def test_rows_without_operations_are_creations() -> None:
    rows = changes(("i", ANN)).drop_columns(["_op"])
    assert written(debezium_json(), rows) == [event("c", None, ANN)]


def test_an_unknown_operation_is_a_failure() -> None:
    encoded = debezium_json().encode(changes(("i", ANN), ("x", BOB)))
    assert [failure.index for failure in encoded.failures] == [1]
    assert encoded.index.to_pylist() == [0]


def test_events_in_files() -> None:
    format_, file = debezium_json(), io.BytesIO()
    writer = format_.file_writer(file, COLUMNS)
    writer.write(changes(("i", ANN), ("ub", ANN), ("u", BOB)))
    writer.close()
    lines = file.getvalue() + b'{"op": "d"}\n\n' + json.dumps(event("d", ANN)).encode()
    read = Read()
    batches = [*format_.read_file(io.BytesIO(lines), COLUMNS, "a.jsonl", read)]
    assert [row for rows, _ in batches for row in shown(rows)] == [
        ("i", 1, "ann"), ("ub", 1, "ann"), ("u", 2, "bob"), ("d", 1, "ann"),
    ]  # fmt: skip
    assert [position for _, index in batches for position in index.to_pylist()] == [1, 2, 2, 5]
    assert [(bad.position, bad.payload) for bad in read.bad] == [(3, b'{"op": "d"}')]
    assert format_.infer_file(io.BytesIO(lines)).names == ["id", "name", "_op"]


def test_no_events() -> None:
    for format_ in (debezium_json(), debezium_avro()):
        decoded = format_.decode(payloads(None), COLUMNS)
        assert (decoded.rows.num_rows, decoded.failures) == (0, [])
        assert len(format_.encode(changes()).payloads) == 0


def debezium_avro(**options: Any) -> DebeziumAvro:
    options = options or {"schema": DATUM}
    return DebeziumAvro(DebeziumAvroConfig.model_validate(options))


def test_avro_of_a_schema() -> None:
    format_ = debezium_avro(schema=DATUM, time_column="at")
    columns = format_.declared_schema()
    assert columns is not None and columns.names == ["id", "name", "_op", "at"]
    with pytest.raises(PenstockError, match="schema of a change event"):
        debezium_avro(schema=DATUM["fields"][0]["type"][1]).declared_schema()


def test_avro_is_written_and_read() -> None:
    derived = {**DATUM, "fields": [f for f in DATUM["fields"] if f["name"] != "source"]}
    format_ = debezium_avro(schema=derived)
    rows = changes(("i", ANN), ("ub", ANN), ("u", BOB), ("d", {"id": 2, "name": None}))
    encoded = format_.encode(rows)
    decoded = format_.decode(encoded.payloads, COLUMNS)
    assert shown(decoded.rows) == [
        ("i", 1, "ann"), ("ub", 1, "ann"), ("u", 2, "bob"), ("d", 2, None),
    ]  # fmt: skip
    assert decoded.index.to_pylist() == [0, 1, 1, 2] and not decoded.failures
    bad = format_.decode(payloads(b"\x99", encoded.payloads[0].as_py()), COLUMNS)
    assert shown(bad.rows) == [("i", 1, "ann")] and [f.index for f in bad.failures] == [0]


def test_avro_without_a_schema_is_derived_from_the_columns() -> None:
    encoded = DebeziumAvro(DebeziumAvroConfig()).encode(changes(("ub", ANN), ("u", BOB)))
    assert len(encoded.payloads) == 1 and not encoded.failures


@pytest.mark.parametrize(("complete", "op"), [(False, "u"), (True, "c")])
def test_an_update_whose_row_before_is_dropped(complete: bool, op: str) -> None:
    format_ = debezium_json()
    format_.complete_changes = complete
    rows = changes(("i", ANN), ("u", BOB), ("ub", ANN), ("u", {**ANN, "name": "a"}))
    assert written(format_, rows) == [
        event("c", after=ANN), event(op, after=BOB),
        event("u", before=ANN, after={**ANN, "name": "a"}),
    ]  # fmt: skip
