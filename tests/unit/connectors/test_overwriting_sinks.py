"""Sinks in which a row overwrites an earlier one: the columns of the key, and the primary key."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from penstock.core.errors import OptionError
from penstock.sdk import Context, Sink, registry

COLUMNS = pa.schema([("id", pa.int64()), ("room", pa.string())])


def sink(type_: str, **options: Any) -> Sink[Any]:
    component = registry.find("sink", type_)
    made = component.create(component.config_type.model_validate(options), Context("p", "out"))
    assert isinstance(made, Sink)
    return made


@pytest.mark.parametrize(
    ("type_", "options", "columns"),
    [
        ("redis", {"url": "redis://h", "key": "k:{room}:{id}"}, ["id", "room"]),
        ("redis", {"url": "redis://h", "key": "latest"}, []),
        ("redis", {"url": "redis://h", "hash": "{room}", "field": "{id}"}, ["id", "room"]),
        ("redis", {"url": "redis://h", "stream": "s"}, None),
        ("redis", {"url": "redis://h", "list": "{room}"}, None),
        ("nats", {"url": "nats://h", "bucket": "b", "key": "{room}"}, ["room"]),
        ("nats", {"url": "nats://h", "subject": "{room}"}, None),
        ("mqtt", {"url": "mqtt://h", "topic": "rooms/{room}", "retain": True}, ["room"]),
        ("mqtt", {"url": "mqtt://h", "topic": "rooms/{room}"}, None),
        ("kafka", {"brokers": "h:1", "topic": "t", "key": "{id}"}, None),
    ],
)
def test_columns_by_which_rows_overwrite_each_other(
    type_: str, options: dict[str, Any], columns: list[str] | None
) -> None:
    assert sink(type_, **options).overwriting_columns == columns


@pytest.mark.parametrize(
    ("type_", "options", "option"),
    [
        ("redis", {"url": "redis://h", "key": "k:{room}"}, "key"),
        ("redis", {"url": "redis://h", "hash": "h", "field": "{room}"}, "hash"),
        ("nats", {"url": "nats://h", "bucket": "b", "key": "{room}"}, "key"),
        ("kafka", {"brokers": "h:1", "topic": "t", "key": "{room}"}, "key"),
        ("kafka", {"brokers": "h:1", "topic": "t", "key_columns": ["room"]}, "key_columns"),
    ],
)
def test_an_upsert_requires_the_primary_key_in_the_key(
    type_: str, options: dict[str, Any], option: str
) -> None:
    upserts = sink(type_, **options)
    upserts.mode, upserts.primary_key = "upsert", ("room",)
    upserts.check_schema(COLUMNS)
    upserts.primary_key = ("room", "id")
    with pytest.raises(OptionError, match="rows that differ only in id") as caught:
        upserts.check_schema(COLUMNS)
    assert (caught.value.code, caught.value.option) == ("primary-key", (option,))
    assert caught.value.hint == f"Add id to {option}."


@pytest.mark.parametrize(
    ("type_", "options"),
    [
        ("kafka", {"brokers": "h:1", "topic": "t"}),
        ("nats", {"url": "nats://h", "bucket": "b"}),
    ],
)
def test_the_primary_key_is_the_key_by_default(type_: str, options: dict[str, Any]) -> None:
    upserts = sink(type_, **options)
    upserts.mode, upserts.primary_key = "upsert", ("room", "id")
    upserts.check_schema(COLUMNS)
