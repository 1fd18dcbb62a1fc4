from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fastavro
import format_samples as samples
import pyarrow as pa
import pytest
from format_samples import ALL, TORTURE, batch, code, message, outcome, read, same, written
from hypothesis import given, settings

from penstock.core.errors import PlanError
from penstock.formats.avro import Avro, AvroConfig
from penstock.sdk.columns.avro_types import avro_schema

WIDE = pa.schema([f for f in ALL if f.name not in ("tiny", "short")])
ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "user", "type": ["null", "string"], "default": None},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "prices", "type": {"type": "array", "items": "double"}},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 2}},
        {"name": "other", "type": ["null", "Kind"]},
    ],
}
AVRO = Avro(AvroConfig(schema=ORDER))
DECLARED = AVRO.declared_schema()


def made(**options: Any) -> Any:
    datum = {k: v for k, v in avro_schema(WIDE).items() if not k.startswith("__")}
    return Avro.create(AvroConfig(schema=json.dumps(datum), **options))


def contained(*rows: dict[str, Any], schema: dict[str, Any] = ORDER, codec: str = "null") -> bytes:
    out = io.BytesIO()
    usual = {"id": 1, "kind": "A", "at": 0, "prices": [], "hash": b"xy", "other": "B"}
    fastavro.writer(out, schema, [{**usual, **row} for row in rows], codec=codec, sync_interval=40)
    return out.getvalue()


def payload(**values: Any) -> bytes:
    row = {"id": 1, "user": "é", "kind": "A", "at": 0, "prices": [1.5], "hash": b"xy", "other": "B"}
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(ORDER), {**row, **values})
    return out.getvalue()


def test_declared() -> None:
    assert DECLARED is not None
    assert {f.name: (str(f.type), f.nullable) for f in DECLARED} == {
        "id": ("int64", False),
        "user": ("string", True),
        "kind": ("string", False),
        "at": ("timestamp[us, tz=UTC]", False),
        "prices": ("list<element: double not null>", False),
        "hash": ("binary", False),
        "other": ("string", True),
    }


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(samples.rows_of(WIDE))
def test_round_trip(rows: pa.RecordBatch) -> None:
    framings = ("none", "single_object", "container")
    for format_ in [made(framing=framing) for framing in framings]:
        encoded = format_.encode(rows)
        assert not encoded.failures
        same(outcome(format_, encoded.payloads.to_pylist(), WIDE).rows, rows)
    plain = Avro(AvroConfig())
    content = written(plain, rows, rows)
    found, places, asked = read(plain, content, WIDE)
    assert places == list(range(1, 2 * rows.num_rows + 1)) and not asked.bad
    same(batch(found[: rows.num_rows], WIDE), rows)
    inferred = plain.infer_file(io.BytesIO(content))
    assert inferred is not None and inferred.equals(WIDE)


def test_payloads() -> None:
    found = outcome(
        AVRO, [payload(), payload()[:-1], payload(user=None), payload() + b"x", None], DECLARED
    )
    assert found.rows.column("user").to_pylist() == ["é", None]
    assert [f.error.code for f in found.failures] == ["not-avro", "not-avro", "no-value"]
    assert message(AVRO, payload() + b"xy", DECLARED) == "not Avro of this schema: 2 trailing bytes"
    narrow = pa.schema([("id", pa.int8()), ("new", pa.string())])
    found = outcome(AVRO, [payload(id=1), payload(id=1000)], narrow)
    assert found.rows.to_pylist() == [{"id": 1, "new": None}]
    assert found.failures[0].error.code == "wrong-type"


def test_single_object() -> None:
    framed = Avro(AvroConfig(schema=ORDER, framing="single_object"))
    rows = AVRO.decode(pa.array([payload()], pa.binary()), DECLARED).rows
    (text,) = framed.encode(rows).payloads.to_pylist()
    assert text.startswith(b"\xc3\x01") and text[10:] == payload()
    assert code(framed, text, DECLARED) == "ok" and code(framed, payload(), DECLARED) == "not-avro"
    assert code(framed, text[:2] + b"12345678" + text[10:], DECLARED) == "not-avro"


def test_containers() -> None:
    format_ = Avro.create(AvroConfig(framing="container"))
    first = contained({"id": 1, "user": "é"}, {"id": 2}, {"id": 3}, codec="deflate")
    other = {"type": "record", "name": "n", "fields": [{"name": "id", "type": "string"}]}
    payloads = [first, b"nonsense", contained(), None, contained({"id": "7"}, schema=other), first]
    given = pa.array(payloads, pa.binary())
    assert format_.infer_schema(given) == AVRO.declared_schema()
    rows, index, bad = format_.rows(given, pa.schema([("id", pa.int64()), ("user", pa.string())]))
    assert rows.column("id").to_pylist() == [1, 2, 3, 7, 1, 2, 3]
    assert rows.column("user").to_pylist() == ["é", None, None, None, "é", None, None]
    assert index.to_pylist() == [0, 0, 0, 4, 5, 5, 5]
    assert [(at, text, part, error.code) for at, text, part, error in bad] == [
        (1, b"nonsense", None, "not-avro"),
        (3, None, None, "no-value"),
    ]


def test_a_record_in_a_container_that_does_not_fit() -> None:
    format_ = Avro.create(AvroConfig(framing="container"))
    schema = pa.schema([("id", pa.int8()), ("at", pa.timestamp("us", "UTC"))])
    payload = contained({"id": 5}, {"id": 1000, "at": 7000}, {"id": 6}, codec="deflate")
    rows, index, bad = format_.rows(pa.array([payload], pa.binary()), schema)
    assert (rows.column("id").to_pylist(), index.to_pylist()) == ([5, 6], [0, 0])
    ((at, text, part, error),) = bad
    assert (at, part, error.code) == (0, 1, "wrong-type")
    (alone,) = fastavro.reader(io.BytesIO(text))
    assert (alone["id"], alone["at"].second, alone["other"]) == (1000, 7, "B")


def test_a_container_that_is_broken_gives_nothing() -> None:
    format_ = Avro.create(AvroConfig(framing="container"))
    whole = contained(*({"id": number} for number in range(20)))
    for cut in (len(whole) - 1, len(whole) - 30, 10):
        rows, _, bad = format_.rows(pa.array([whole[:cut]], pa.binary()), DECLARED)
        assert rows.num_rows == 0, cut
        assert [(text, error.code) for _, text, _, error in bad] == [(whole[:cut], "not-avro")]


def test_a_container_is_what_others_read() -> None:
    format_ = Avro.create(AvroConfig(framing="container"))
    rows = pa.RecordBatch.from_pylist([{"id": 1, "name": "é"}, {"id": 2, "name": None}])
    payloads = format_.encode(rows).payloads.to_pylist()
    assert [list(fastavro.reader(io.BytesIO(each))) for each in payloads] == [
        [row] for row in rows.to_pylist()
    ]


@pytest.mark.slow
def test_torture() -> None:
    contained_ = Avro.create(AvroConfig(framing="container"))
    outcome(contained_, TORTURE, DECLARED)
    outcome(AVRO, TORTURE, DECLARED)
    good = payload()
    broken = [bytes([*good[:i], good[i] ^ 0xFF, *good[i + 1 :]]) for i in range(len(good))]
    outcome(AVRO, [good[:i] for i in range(len(good))] + broken, DECLARED)
    mixed = [payload(id=i) if i % 7 else b"\xff" for i in range(2000)]
    assert outcome(AVRO, mixed, DECLARED).rows.num_rows == 2000 - 286
    for content in TORTURE:
        read(Avro(AvroConfig()), content or b"", WIDE)


def test_a_broken_block_costs_itself_only() -> None:
    out = io.BytesIO()
    rows = [{"a": i} for i in range(3000)]
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "string"}]}
    fastavro.writer(
        out, schema, [{"a": f"text {r['a']}"} for r in rows], sync_interval=2000, codec="null"
    )
    content = bytearray(out.getvalue())
    place = content.index(b"text 1500") - 1
    content[place] = 0xFF
    found, _, asked = read(Avro(AvroConfig()), bytes(content), pa.schema([("a", pa.string())]))
    assert 2700 < len(found) < 3000 and len(asked.bad) == 1
    assert found[-1] == {"a": "text 2999"}


def test_bad_rows() -> None:
    kinds = pa.schema(list(DECLARED))
    rows = AVRO.decode(pa.array([payload(), payload()], pa.binary()), kinds).rows
    wrong = rows.set_column(2, "kind", pa.array(["A", "Z"]))
    encoded = AVRO.encode(wrong)
    assert len(encoded.payloads) == 1 and encoded.failures[0][0] == 1


def test_columns_without_a_type_of_avro() -> None:
    rates = pa.map_(pa.int32(), pa.float64())
    for type_, column in ((rates, "a"), (pa.struct([("b", pa.list_(rates))]), "a.b")):
        with pytest.raises(PlanError) as caught:
            avro_schema(pa.schema([("a", type_)]))
        assert caught.value.message == f'column "{column}": MAP<INT, DOUBLE> has no Avro type'


def test_invalid_schemas(tmp_path: Path) -> None:
    (tmp_path / "bad.avsc").write_text("{")
    recursive = {"type": "record", "name": "N", "fields": [{"name": "n", "type": ["null", "N"]}]}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"schema": "{"}, "Expecting property name"),
        ({"schema": {"type": "record"}}, '"name" is a required field'),
        ({"schema": "long"}, "Expecting value"),
        ({"schema_file": str(tmp_path / "no")}, "cannot read .*: No such file or directory"),
        ({"schema_file": str(tmp_path / "bad.avsc")}, "Expecting property name"),
        ({"schema": recursive}, 'the Avro type "N" is recursive'),
    ]
    for options, expected in cases:
        with pytest.raises(PlanError, match=expected):
            Avro(AvroConfig(**options)).declared_schema()
    with pytest.raises(PlanError, match="require a schema"):
        Avro(AvroConfig()).decode(pa.array([b""], pa.binary()), WIDE)
