"""The JSON Schema that editors use."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from penstock.spec.models import PipelineSpec
from penstock.spec.runtime_models import Runtime
from penstock.spec.schema import json_schema

COMPONENTS: dict[str, dict[str, dict[str, Any]]] = {
    "source": {
        "files": {
            "description": "Files.",
            "properties": {
                "path": {"type": "string"},
                "limit": {"type": "integer"},
                "tls": {"$ref": "#/$defs/Tls"},
            },
            "required": ["path"],
            "$defs": {"Tls": {"type": "object", "properties": {"verify": {"type": "boolean"}}}},
        },
        "kafka": {"properties": {"topic": {"type": "string"}}, "required": ["topic"]},
    },
    "sink": {"print": {"properties": {}}},
    "format": {"csv": {"properties": {"header": {"type": "boolean"}}}, "json": {"properties": {}}},
}


def document(**source: object) -> dict[str, object]:
    return {"sources": {"a": source}, "sinks": {"out": {"type": "print", "from": "a"}}}


@pytest.mark.parametrize("components", [None, COMPONENTS])
def test_references_lead_somewhere(components: Any) -> None:
    schema = json_schema(components)
    for reference in references(schema):
        assert reference.removeprefix("#/$defs/") in schema["$defs"]


def references(node: Any) -> list[str]:
    if isinstance(node, list):
        return [found for each in node for found in references(each)]
    if not isinstance(node, dict):
        return []
    own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
    return own + [found for each in node.values() for found in references(each)]


def test_every_key_is_described() -> None:
    schema = json_schema()
    assert set(schema["properties"]) == set(PipelineSpec.model_fields)
    for name, definition in [("root", schema), *schema["$defs"].items()]:
        for key, value in definition.get("properties", {}).items():
            assert value.get("description") or "$ref" in value, f"{name}.{key}"
    assert set(schema["$defs"]["Runtime"]["properties"]) == set(Runtime.model_fields)


@pytest.mark.parametrize(
    ("pipeline", "valid"),
    [
        (document(type="files", path="a.csv"), True),
        (document(type="files", path="a.csv", limit=5), True),
        (document(type="files", path="a.csv", limit="${LIMIT}"), True),
        (document(type="files", path="a.csv", limit="many"), False),
        (document(type="files", path="a.csv", tls={"verify": "${V}"}), True),
        (document(type="files", path="a.csv", tls={"verify": 5}), False),
        (document(type="files", path="a.csv", primary_key="id", on_error="drop"), True),
        (document(type="files", path="a.csv", on_error="ignore"), False),
        (document(type="files", pth="a.csv"), False),
        (document(type="files"), False),
        (document(type="files", topic="x", path="a"), False),
        (document(type="kafka", topic="x", format="csv"), True),
        (document(type="kafka", topic="x", format={"type": "csv", "header": True}), True),
        (document(type="kafka", topic="x", format={"type": "csv", "headr": True}), False),
        (document(type="kafka", topic="x", format="xml"), False),
        (document(type="kafka", connection="prod"), True),
        (document(connection="prod", topic="x"), True),
        (document(type="files", path="a", watermark={"column": "at", "delay": "1h"}), True),
        (document(type="nope"), False),
        (document(), False),
        ({"sources": {"a-b": {"type": "kafka", "topic": "x"}}}, False),
        ({"souces": {}}, False),
        ({"runtime": {"trigger": "asap", "partitions": "${P}"}}, True),
        ({"runtime": {"triger": "1s"}}, False),
    ],
)
def test_editors_accept_the_same_pipelines(pipeline: object, valid: bool) -> None:
    validator = jsonschema.Draft202012Validator(json_schema(COMPONENTS))
    assert (not list(validator.iter_errors(pipeline))) == valid


@pytest.mark.slow
def test_the_schema_is_itself_valid() -> None:
    for components in (None, COMPONENTS):
        schema = json_schema(components)
        jsonschema.Draft202012Validator.check_schema(schema)
        for example in schema["examples"]:
            jsonschema.Draft202012Validator(json_schema()).validate(example)
