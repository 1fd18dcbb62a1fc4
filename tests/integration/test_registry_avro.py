"""Avro with a registry: writer's schemas by id, resolution, pins, references, registration."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from registry_formats import (
    ID,
    UNKNOWN,
    batch,
    failure_codes,
    formatted,
    optional,
    payloads,
    read,
    record,
    renamed,
    written,
)

from penstock.core.errors import Permanent, PlanError
from servers.apicurio import Apicurio

NAME = pa.field("name", pa.string())


@pytest.fixture
def subject(apicurio: Apicurio) -> str:
    return apicurio.new_subject()


def test_messages_of_confluent_are_read(apicurio: Apicurio, subject: str) -> None:
    time = {"type": "long", "logicalType": "timestamp-millis"}
    schema = record(optional("name"), {"name": "at", "type": time})
    at = datetime(2024, 5, 1, 9, 15, tzinfo=UTC)
    found = written(apicurio, subject, schema, {"id": 1, "name": "ann", "at": at})
    format_ = formatted("avro", apicurio, subject)
    columns = format_.infer_schema(payloads())
    utc = pa.field("at", pa.timestamp("us", "UTC"), nullable=False)
    assert columns.equals(pa.schema([ID, NAME, utc]))
    decoded = format_.decode(payloads(*found), columns)
    assert decoded.rows.to_pylist() == [{"id": 1, "name": "ann", "at": at}]


def test_written_messages_are_read_by_confluent(apicurio: Apicurio, subject: str) -> None:
    at = datetime(2024, 5, 1, 9, 15, tzinfo=UTC)
    rows = [{"id": 1, "name": "ann", "at": at}, {"id": 2, "name": None, "at": None}]
    fields = NAME, pa.field("at", pa.timestamp("us", "UTC"))
    encoded = formatted("avro", apicurio, subject).encode(batch(rows, *fields))
    assert read(apicurio, subject, encoded.payloads) == rows


def test_records_of_several_types_have_their_name(apicurio: Apicurio, subject: str) -> None:
    total, carrier = optional("total", "double"), optional("carrier")
    found = [
        *written(apicurio, subject, record(total, name="Placed"), {"id": 1, "total": 2.5}),
        *written(apicurio, subject, record(carrier, name="Shipped"), {"id": 1, "carrier": "sea"}),
    ]
    columns = pa.schema(
        [ID, ("total", pa.float64()), ("carrier", pa.string()), ("kind", pa.string())]
    )
    format_ = formatted("avro", apicurio, subject, type_column="kind")
    decoded = format_.decode(payloads(*reversed(found)), columns)
    assert not decoded.failures
    assert decoded.rows.to_pylist() == [
        {"id": 1, "total": None, "carrier": "sea", "kind": "Shipped"},
        {"id": 1, "total": 2.5, "carrier": None, "kind": "Placed"},
    ]


def test_a_column_that_the_schema_of_a_payload_does_not_support(
    apicurio: Apicurio, subject: str
) -> None:
    union = {"name": "value", "type": ["string", "long"]}
    found = written(apicurio, subject, record(union), {"id": 1, "value": 5})
    format_ = formatted("avro", apicurio, subject)
    columns = pa.schema([ID, ("value", pa.int64())])
    (failure,) = format_.decode(payloads(*found), columns).failures
    assert failure.error.code == "unsupported-type"
    text = pa.schema([ID, ("value", pa.string())])
    assert format_.decode(payloads(*found), text).rows.to_pylist() == [{"id": 1, "value": "5"}]
    only = format_.decode(payloads(*found), pa.schema([ID])).rows
    assert only.to_pylist() == [{"id": 1}]


def test_the_subject_is_that_of_the_topic(apicurio: Apicurio, subject: str) -> None:
    topic = subject.removesuffix("-value")
    formatted("avro", apicurio, None, topic=topic).encode(batch([{"id": 1}]))
    assert len(apicurio.schemas(subject)) == 1


def test_without_a_topic_the_subject_has_to_be_said(apicurio: Apicurio) -> None:
    with pytest.raises(PlanError) as caught:
        formatted("avro", apicurio, None).encode(batch([]))
    assert caught.value.code == "missing-option"
    assert "subject: orders-value" in str(caught.value.hint)


def test_versions_mixed_in_one_batch(apicurio: Apicurio, subject: str) -> None:
    old = written(apicurio, subject, record(optional("name")), *({"id": i} for i in (1, 2)))
    columns = formatted("avro", apicurio, subject).infer_schema(payloads())
    renamed = record(
        optional("title", aliases=["name"]), {"name": "n", "type": "int", "default": 7}
    )
    new = written(apicurio, subject, renamed, *({"id": i, "title": "x", "n": 1} for i in (3, 4)))
    mixed = payloads(old[0], new[0], b"{}", old[1], None, new[1])
    kept = formatted("avro", apicurio, subject).decode(mixed, columns)
    assert [row["id"] for row in kept.rows.to_pylist()] == [1, 3, 2, 4]
    assert kept.rows.schema.names == ["id", "name"]
    assert kept.index.to_pylist() == [0, 1, 3, 5]
    assert failure_codes(kept) == [(2, "not-framed"), (4, "no-value")]
    later = formatted("avro", apicurio, subject)
    found = later.decode(payloads(old[0], new[0]), later.infer_schema(payloads()))
    assert found.rows.to_pylist() == [
        {"id": 1, "title": None, "n": 7}, {"id": 3, "title": "x", "n": 1},
    ]  # fmt: skip


def test_a_given_schema_is_read_as(apicurio: Apicurio, subject: str) -> None:
    found = written(apicurio, subject, record(optional("name")), {"id": 1, "name": "ann"})
    reader_schema = record({"name": "n", "type": "int", "default": 7})
    format_ = formatted("avro", apicurio, subject, schema=reader_schema)
    decoded = format_.decode(payloads(*found), format_.declared_schema())
    assert decoded.rows.to_pylist() == [{"id": 1, "n": 7}]


def test_declared_columns_are_taken_from_what_was_written(apicurio: Apicurio, subject: str) -> None:
    found = written(apicurio, subject, record(optional("name")), {"id": 1, "name": "ann"})
    columns = pa.schema([("name", pa.string()), ("missing", pa.int64())])
    decoded = formatted("avro", apicurio, None).decode(payloads(*found), columns)
    assert decoded.rows.to_pylist() == [{"name": "ann", "missing": None}]


def test_ids_that_are_replaced(apicurio: Apicurio, subject: str) -> None:
    values = {"id": 1, "name": "ann"}, {"id": 2, "name": "bob"}
    ours, foreign = written(apicurio, subject, record(optional("name")), *values)
    schema = apicurio.schemas(subject)[0].schema_id
    mixed = payloads(ours, renamed(foreign, UNKNOWN))
    columns = formatted("avro", apicurio, subject).infer_schema(payloads())
    without = formatted("avro", apicurio, subject).decode(mixed, columns)
    assert failure_codes(without) == [(1, "unknown-schema")]
    replacing = {"replace_ids": {UNKNOWN: schema, UNKNOWN + 1: UNKNOWN}}
    format_ = formatted("avro", apicurio, subject, registry=replacing)
    assert format_.decode(mixed, columns).rows.to_pylist() == list(values)
    twice = format_.decode(payloads(renamed(foreign, UNKNOWN + 1)), columns)
    assert failure_codes(twice) == [(0, "unknown-schema")], "an id is replaced once"


@pytest.mark.parametrize("ids", [{7: 7}, {0: 7}, {7: 0}, {2**31: 7}, {7: 2**31}, {7: "x"}])
def test_ids_that_cannot_be_replaced(ids: dict[int, Any]) -> None:
    with pytest.raises(ValueError, match="replace_ids"):
        formatted("avro", "http://nowhere", None, registry={"replace_ids": ids})


def test_an_older_version(apicurio: Apicurio, subject: str) -> None:
    for schema in (record(), record(optional("name"))):
        apicurio.register(subject, schema)
    first = formatted("avro", apicurio, subject, registry={"version": 1})
    assert first.infer_schema(payloads()).names == ["id"]
    with pytest.raises(Permanent, match="no version 9"):
        formatted("avro", apicurio, subject, registry={"version": 9}).infer_schema(payloads())


@pytest.mark.parametrize(
    ("field", "why"),
    [
        ({"name": "id", "type": "string"}, "Schema mismatch"),
        ({"name": "more", "type": "int"}, "No default"),
    ],
)
def test_a_writer_that_does_not_fit(
    apicurio: Apicurio, subject: str, field: dict[str, Any], why: str
) -> None:
    reader = apicurio.register(subject, {**record(), "fields": [*record()["fields"][:0], field]})
    columns = formatted("avro", apicurio, subject).infer_schema(payloads())
    found = written(apicurio, subject, record(), {"id": 1})
    decoded = formatted("avro", apicurio, subject).decode(payloads(*found), columns)
    assert failure_codes(decoded) == [(0, "incompatible-schema")]
    writer = apicurio.schemas(subject)[-1].schema_id
    message = decoded.failures[0].error.message
    assert f"schema {writer} " in message and f"schema {reader}," in message and why in message


def test_a_time_of_another_unit_is_not_misread(apicurio: Apicurio, subject: str) -> None:
    def schema(unit: str) -> dict[str, Any]:
        return record({"name": "at", "type": {"type": "long", "logicalType": f"timestamp-{unit}"}})

    apicurio.register(subject, schema("micros"))
    columns = formatted("avro", apicurio, subject).infer_schema(payloads())
    value = {"id": 1, "at": datetime(2024, 1, 1, tzinfo=UTC)}
    found = written(apicurio, subject, schema("millis"), value)
    decoded = formatted("avro", apicurio, subject).decode(payloads(*found), columns)
    assert failure_codes(decoded) == [(0, "incompatible-schema")]


def test_types_of_other_schemas(apicurio: Apicurio, subject: str) -> None:
    street = {"type": "record", "name": "shop.Street", "fields": [optional("name")]}
    place = {"type": "record", "name": "shop.Place", "fields": [
        {"name": "street", "type": "shop.Street"}]}  # fmt: skip
    inner, middle = apicurio.new_subject(), apicurio.new_subject()
    apicurio.register(inner, street)
    apicurio.register(middle, place, references=[("shop.Street", inner, 1)])
    whole = record({"name": "a", "type": "shop.Place"}, {"name": "b", "type": "shop.Place"})
    apicurio.register(subject, whole, references=[("shop.Place", middle, 1)])
    format_ = formatted("avro", apicurio, subject, registry={"register": False})
    columns = format_.infer_schema(payloads())
    row = {"id": 1, "a": {"street": {"name": "x"}}, "b": {"street": {"name": None}}}
    plain = columns.remove_metadata()
    encoded = format_.encode(pa.RecordBatch.from_pylist([row], schema=plain))
    assert read(apicurio, subject, encoded.payloads) == [row]
    assert format_.decode(encoded.payloads, columns).rows.to_pylist() == [row]
    assert len(apicurio.schemas(subject)) == 1


def test_new_columns_are_a_new_version(apicurio: Apicurio, subject: str) -> None:
    first = formatted("avro", apicurio, subject, registry={"compatibility": "FULL"})
    first.prepare(pa.schema([ID]))
    before = first.encode(batch([{"id": 1}]))
    after = formatted("avro", apicurio, subject).encode(batch([{"id": 2, "name": "x"}], NAME))
    assert len(apicurio.schemas(subject)) == 2
    assert read(apicurio, subject, before.payloads) == [{"id": 1}]
    assert read(apicurio, subject, after.payloads) == [{"id": 2, "name": "x"}]


def test_an_incompatible_schema(apicurio: Apicurio, subject: str) -> None:
    strict = {"compatibility": "BACKWARD"}
    formatted("avro", apicurio, subject, registry=strict).prepare(pa.schema([ID]))
    with pytest.raises(Permanent) as caught:
        formatted("avro", apicurio, subject).prepare(pa.schema([("id", pa.string())]))
    assert caught.value.code == "incompatible-schema"
    assert "LONG" in str(caught.value.detail), "the registry's own words"
    assert len(apicurio.schemas(subject)) == 1


def test_a_schema_of_the_user(apicurio: Apicurio, subject: str) -> None:
    schema = record(optional("name"), name="shop.Order")
    format_ = formatted("avro", apicurio, subject, schema=schema)
    encoded = format_.encode(batch([{"id": 1}]))
    assert read(apicurio, subject, encoded.payloads) == [{"id": 1, "name": None}]
    (kept,) = apicurio.schemas(subject)
    registered = json.loads(kept.schema.schema_str)
    assert (registered["namespace"], registered["name"]) == ("shop", "Order")


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ([ID, ("more", pa.string())], "unknown-column"),
        ([("name", pa.string())], "missing-column"),
        ([("id", pa.list_(pa.int64()))], "wrong-type"),
    ],
)
def test_without_registering_columns_must_fit(
    apicurio: Apicurio, subject: str, fields: list[Any], code: str
) -> None:
    apicurio.register(subject, record(optional("name")))
    format_ = formatted("avro", apicurio, subject, registry={"register": False})
    format_.prepare(pa.schema([ID]))
    with pytest.raises(PlanError) as caught:
        format_.prepare(pa.schema(fields))
    assert caught.value.code == code


def test_a_trial_registers_nothing(apicurio: Apicurio, subject: str) -> None:
    format_ = formatted("avro", apicurio, subject).offline()
    assert len(format_.encode(batch([{"id": 1}])).payloads) == 1
    assert subject not in apicurio.client.get_subjects()
