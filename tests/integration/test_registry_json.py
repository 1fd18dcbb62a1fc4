"""JSON with a registry: columns of a JSON Schema, and a schema of columns."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from registry_formats import (
    ID,
    UNKNOWN,
    batch,
    failure_codes,
    formatted,
    payloads,
    read_json,
    renamed,
    written_json,
)

from penstock.core.errors import PlanError
from servers.apicurio import Apicurio

AT, DAY = datetime(2024, 5, 1, 9, 15, tzinfo=UTC), date(2024, 5, 1)
NULLABLE = {"oneOf": [{"type": "null"}, {"type": "number"}]}
ORDER = {
    "title": "Order",
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "at": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"},
        "who": {"$ref": "#/definitions/who"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        "share": NULLABLE,
        "either": {"type": ["string", "integer"]},
        "kind": {"enum": ["a", "b"]},
    },
    "required": ["id"],
    "definitions": {"who": {"type": "object", "properties": {"name": {"type": "string"}}}},
}


@pytest.fixture
def subject(apicurio: Apicurio) -> str:
    return apicurio.new_subject()


def test_messages_of_confluent_are_read(apicurio: Apicurio, subject: str) -> None:
    value = {
        "id": 1, "at": AT.isoformat(), "day": "2024-05-01", "who": {"name": "ann"}, "tags": ["x"],
        "counts": {"k": 2}, "share": 0.5, "either": 7, "kind": "a",
    }  # fmt: skip
    found = written_json(apicurio, subject, ORDER, value, {"id": 2})
    format_ = formatted("json", apicurio, subject)
    first, second = format_.decode(
        payloads(*found), format_.infer_schema(payloads())
    ).rows.to_pylist()
    expected = {**value, "at": AT, "day": DAY, "counts": [("k", 2)], "either": "7"}
    assert first == expected
    assert second == {**dict.fromkeys(expected), "id": 2}


def test_ids_that_are_replaced(apicurio: Apicurio, subject: str) -> None:
    (found,) = written_json(apicurio, subject, ORDER, {"id": 2})
    foreign, columns = payloads(renamed(found, UNKNOWN)), pa.schema([ID])
    without = formatted("json", apicurio, subject).decode(foreign, columns)
    assert failure_codes(without) == [(0, "unknown-schema")]
    replacing = {"replace_ids": {UNKNOWN: apicurio.schemas(subject)[0].schema_id}}
    format_ = formatted("json", apicurio, subject, registry=replacing)
    assert format_.decode(foreign, columns).rows.to_pylist() == [{"id": 2}]


def test_written_messages_are_read_and_validated_by_confluent(
    apicurio: Apicurio, subject: str
) -> None:
    fields: list[tuple[str, Any]] = [
        ("at", pa.timestamp("us", "UTC")), ("day", pa.date32()), ("share", pa.float64()),
        ("who", pa.struct([("name", pa.string())])), ("tags", pa.list_(pa.string())),
        ("counts", pa.map_(pa.string(), pa.int64())), ("yes", pa.bool_()), ("raw", pa.binary()),
        ("price", pa.decimal128(10, 2)),
    ]  # fmt: skip
    row = {"id": 1, "at": AT, "day": DAY, "share": 0.5, "who": {"name": "ann"}, "tags": ["x"],
           "counts": [("k", 2)], "yes": True, "raw": b"x", "price": 2}  # fmt: skip
    rows = batch([row, {"id": 2}], *fields)
    format_ = formatted("json", apicurio, subject)
    encoded = format_.encode(rows)
    first, second = read_json(apicurio, subject, encoded.payloads)
    assert first["who"] == {"name": "ann"} and first["counts"] == {"k": 2}
    assert second == {"id": 2}
    assert format_.decode(encoded.payloads, rows.schema).rows.to_pylist() == rows.to_pylist()
    inferred = format_.infer_schema(payloads())
    assert inferred.names == rows.schema.names
    assert [f.type for f in inferred][:-1] == [f.type for f in rows.schema][:-1]


def test_times_as_numbers(apicurio: Apicurio, subject: str) -> None:
    format_ = formatted("json", apicurio, subject, timestamps="millis")
    encoded = format_.encode(batch([{"id": 1, "at": AT}], ("at", pa.timestamp("us", "UTC"))))
    (found,) = read_json(apicurio, subject, encoded.payloads)
    assert found == {"id": 1, "at": AT.timestamp() * 1000}


def test_schemas_of_others(apicurio: Apicurio, subject: str) -> None:
    who = apicurio.new_subject()
    apicurio.register(who, ORDER["definitions"]["who"], "JSON")  # type: ignore[index]
    whole = {"type": "object", "properties": {"who": {"$ref": "who.json"}}}
    apicurio.register(subject, whole, "JSON", [("who.json", who, 1)])
    columns = formatted("json", apicurio, subject).infer_schema(payloads())
    assert columns.field("who").type == pa.struct([("name", pa.string())])


def test_a_schema_that_contains_itself(apicurio: Apicurio, subject: str) -> None:
    apicurio.register(subject, {"type": "object", "properties": {"next": {"$ref": "#"}}}, "JSON")
    columns = formatted("json", apicurio, subject).infer_schema(payloads())
    assert columns.field("next").type == pa.struct([("next", pa.string())])


def test_without_registering_columns_must_fit(apicurio: Apicurio, subject: str) -> None:
    apicurio.register(subject, {**ORDER, "additionalProperties": False}, "JSON")
    format_ = formatted("json", apicurio, subject, registry={"register": False})
    format_.prepare(pa.schema([ID]))
    for fields, code in (([ID, ("more", pa.string())], "unknown-column"), ([], "missing-column")):
        with pytest.raises(PlanError) as caught:
            format_.prepare(pa.schema(fields))
        assert caught.value.code == code


def test_bad_json_behind_a_good_frame(apicurio: Apicurio, subject: str) -> None:
    (good,) = written_json(apicurio, subject, ORDER, {"id": 1})
    found = formatted("json", apicurio, None).decode(
        payloads(good[:5] + b"{", good), pa.schema([ID])
    )
    assert failure_codes(found) == [(0, "not-json")]
