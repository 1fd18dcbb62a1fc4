"""JSON Schema of a pipeline file, for editors: what they complete, explain and complain about."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from penstock.core.names import LONGEST, NODE_NAME
from penstock.spec.models import PipelineSpec

Schema = dict[str, Any]
Components = Mapping[str, Mapping[str, Schema]]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_MODELS = {"source": "SourceSpec", "transform": "TransformSpec", "sink": "SinkSpec"}
_EXPRESSION: Schema = {
    "type": "string",
    "pattern": r"\$\{",
    "description": "From the environment: ${NAME}, ${NAME:-default} or ${secret:file/NAME}.",
}
_EXAMPLE: Schema = {
    "name": "clicks-per-minute",
    "sources": {"clicks": {"type": "files", "path": "clicks/*.json"}},
    "transforms": {"valid": {"type": "sql", "sql": "SELECT * FROM clicks WHERE user IS NOT NULL"}},
    "sinks": {"out": {"type": "print", "from": "valid"}},
}


def json_schema(components: Components | None = None) -> Schema:
    """The JSON Schema (2020-12) of a pipeline file.

    `components` has, for each of `source`, `transform`, `sink` and `format`, the JSON
    Schema of each type's options. With it an unknown type and an unknown option are wrong;
    without it a node may have any option.
    """
    schema = PipelineSpec.model_json_schema(by_alias=True)
    schema = _loosened(_untitled(schema))
    definitions = schema["$defs"]
    definitions["Expression"] = _EXPRESSION
    for kind in _MODELS:
        schema["properties"][f"{kind}s"]["propertyNames"] = {
            "pattern": NODE_NAME,
            "maxLength": LONGEST,
        }
    known = components or {}
    if formats := known.get("format"):
        definitions["Format"] = _format(formats, definitions)
        for name in ("SourceSpec", "SinkSpec", "DeadLetterSpec"):
            _use_format(definitions[name])
    for kind, name in _MODELS.items():
        if types := known.get(kind):
            definitions[name] = _node(definitions[name], kind, types, definitions)
    if types := known.get("sink"):
        letter = definitions["DeadLetterSpec"]
        definitions["DeadLetterSpec"] = _node(letter, "dead_letter", types, definitions)
    title = {"$schema": DIALECT, "title": "Penstock pipeline"}
    return {**title, **schema, "examples": [_EXAMPLE]}


def _untitled(node: Any) -> Any:
    """Without the titles that pydantic makes of the names of fields."""
    if isinstance(node, list):
        return [_untitled(each) for each in node]
    if not isinstance(node, dict):
        return node
    cleaned = {}
    for key, value in node.items():
        if key in {"properties", "$defs"}:
            cleaned[key] = {name: _untitled(each) for name, each in value.items()}
        elif key in {"default", "examples", "enum", "const"}:
            cleaned[key] = value
        elif key != "title":
            cleaned[key] = _untitled(value)
    return cleaned


def _loosened(node: Any) -> Any:
    """With `${...}` allowed wherever a number, a truth value or one of a few words is."""
    if isinstance(node, list):
        return [_loosened(each) for each in node]
    if not isinstance(node, dict):
        return node
    loose = {
        key: {name: _loosened(each) for name, each in value.items()}
        if key in {"properties", "$defs"}
        else value
        if key in {"default", "examples", "enum", "const"}
        else _loosened(value)
        for key, value in node.items()
    }
    if loose.get("type") not in {"integer", "number", "boolean"} and "enum" not in loose:
        return loose
    told = {key: loose.pop(key) for key in ("description", "default", "examples") if key in loose}
    return {"anyOf": [loose, {"$ref": "#/$defs/Expression"}], **told}


def _node(shared: Schema, kind: str, types: Mapping[str, Schema], definitions: Schema) -> Schema:
    """A node that has the options of its `type` and no others."""
    own = dict(shared["properties"])
    own["type"] = {**own["type"], "enum": sorted(types)}
    connected = "connection" in own
    required = [name for name in shared.get("required", []) if name != "type" or not connected]
    node: Schema = {
        "type": "object",
        "description": shared.get("description", ""),
        "properties": own,
        "required": required,
        "allOf": [],
    }
    if connected:
        node["anyOf"] = [{"required": ["type"]}, {"required": ["connection"]}]
    for name, options in sorted(types.items()):
        key = f"{kind}.{name}"
        definitions[key] = _typed(own, name, _adopted(options, key, definitions), connected)
        node["allOf"].append(_when(name, key))
    return node


def _when(name: str, key: str) -> Schema:
    return {
        "if": {"properties": {"type": {"const": name}}, "required": ["type"]},
        "then": {"$ref": f"#/$defs/{key}"},
    }


def _typed(shared: Schema, name: str, options: Schema, connected: bool) -> Schema:
    """What a node of one type may have; required options may come from its connection."""
    properties = {**options.get("properties", {}), **shared, "type": {"const": name}}
    typed: Schema = {
        "type": "object",
        "description": options.get("description", ""),
        "properties": properties,
        "additionalProperties": False,
    }
    required = options.get("required", [])
    if required and connected:
        typed["anyOf"] = [{"required": required}, {"required": ["connection"]}]
    elif required:
        typed["required"] = required
    return typed


def _format(formats: Mapping[str, Schema], definitions: Schema) -> Schema:
    names = sorted(formats)
    options = _node(
        {"properties": {"type": {"type": "string"}}, "required": ["type"]},
        "format",
        formats,
        definitions,
    )
    word = {"anyOf": [{"enum": names}, {"$ref": "#/$defs/Expression"}]}
    return {"anyOf": [word, options, {"type": "null"}]}


def _use_format(node: Schema) -> None:
    told = {
        k: v for k, v in node["properties"]["format"].items() if k in {"description", "default"}
    }
    node["properties"]["format"] = {"$ref": "#/$defs/Format", **told}


def _adopted(options: Schema, key: str, definitions: Schema) -> Schema:
    """A component's schema, its definitions moved to ours under names of their own."""
    schema = _loosened(_untitled(copy.deepcopy(options)))
    for name, definition in schema.pop("$defs", {}).items():
        definitions[f"{key}.{name}"] = _renamed(definition, key)
    return dict(_renamed(schema, key))


def _renamed(node: Any, key: str) -> Any:
    if isinstance(node, list):
        return [_renamed(each, key) for each in node]
    if not isinstance(node, dict):
        return node
    renamed = {name: _renamed(value, key) for name, value in node.items()}
    reference = renamed.get("$ref")
    if isinstance(reference, str) and reference != "#/$defs/Expression":
        renamed["$ref"] = reference.replace("#/$defs/", f"#/$defs/{key}.")
    return renamed
