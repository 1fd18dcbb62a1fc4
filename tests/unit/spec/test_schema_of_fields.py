"""The JSON Schema of the fields of a `generate` source."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from penstock.sdk import registry
from penstock.spec.schema import json_schema


@pytest.fixture(scope="module")
def validator() -> Any:
    return jsonschema.Draft202012Validator(json_schema(registry.schemas()))


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("field", "valid"),
    [
        ("sequence", True), ("name", True), ("${KIND}", True), ("bool", True),
        ({"type": "choice", "of": [1]}, True), ({"type": "struct", "fields": {"a": "uuid"}}, True),
        ("sequenc", False), ("choice", False), ({"type": "choice"}, False),
        ({"type": "sequence", "wrong": 1}, False),
    ],
)  # fmt: skip
def test_field_of_generate(field: Any, valid: bool, validator: Any) -> None:
    source = {"type": "generate", "fields": {"id": field}}
    document = {"sources": {"a": source}, "sinks": {"out": {"type": "print", "from": "a"}}}
    assert validator.is_valid(document) is valid


def test_properties_of_kafka_are_text_numbers_or_booleans(validator: Any) -> None:
    properties = {"linger.ms": 5, "enable.idempotence": True, "client.id": "shop"}
    source = {"type": "kafka", "brokers": "a:1", "topic": "t", "properties": properties}
    document = {"sources": {"a": source}, "sinks": {"out": {"type": "print", "from": "a"}}}
    assert not list(validator.iter_errors(document))
