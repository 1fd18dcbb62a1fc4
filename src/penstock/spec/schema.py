"""JSON Schema of pipeline files, for completion, documentation and checks in editors."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from penstock.core.names import MAX_LENGTH, NODE_NAME
from penstock.spec.models import PipelineSpec

Schema = dict[str, Any]
Components = Mapping[str, Mapping[str, Schema]]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_MODELS = {
    "source": "SourceSpec",
    "transform": "TransformSpec",
    "sink": "SinkSpec",
    "side_output": "SideOutputSpec",
}
_EXPRESSION: Schema = {
    "type": "string",
    "pattern": r"\$\{",
    "description": "A variable or secret: ${NAME}, ${NAME:-default} or ${secret:file/NAME}.",
}
_EXAMPLE: Schema = {
    "name": "clicks-per-minute",
    "sources": {"clicks": {"type": "files", "path": "clicks/*.json"}},
    "transforms": {"valid": {"type": "sql", "sql": "SELECT * FROM clicks WHERE user IS NOT NULL"}},
    "sinks": {"out": {"type": "print", "from": "valid"}},
}


def json_schema(components: Components | None = None) -> Schema:
    """Returns the JSON Schema (2020-12) of a pipeline file.

    `components` has the JSON Schema of the options of each type, by kind (`source`, `transform`,
    `sink`, `format`) and type. Without `components` a node may have any type and option.
    """
    schema = PipelineSpec.model_json_schema(by_alias=True)
    schema = _with_expressions(_without_titles(schema))
    definitions = schema["$defs"]
    definitions["Expression"] = _EXPRESSION
    for kind in _MODELS:
        schema["properties"][f"{kind}s"]["propertyNames"] = {
            "pattern": NODE_NAME,
            "maxLength": MAX_LENGTH,
        }
    component_schemas = components or {}
    if formats := component_schemas.get("format"):
        definitions["Format"] = _format(formats, definitions)
        for name in ("SourceSpec", "SinkSpec", "DeadLetterSpec"):
            _use_format(definitions[name])
    for kind, name in _MODELS.items():
        if types := component_schemas.get(kind):
            definitions[name] = _node(definitions[name], kind, types, definitions)
    if types := component_schemas.get("sink"):
        dead_letter = definitions["DeadLetterSpec"]
        definitions["DeadLetterSpec"] = _node(dead_letter, "dead_letter", types, definitions)
    title = {"$schema": DIALECT, "title": "Penstock pipeline"}
    return {**title, **schema, "examples": [_EXAMPLE]}


def _without_titles(node: Any) -> Any:
    """Returns the schema without the titles of pydantic."""
    if isinstance(node, list):
        return [_without_titles(item) for item in node]
    if not isinstance(node, dict):
        return node
    cleaned = {}
    for key, value in node.items():
        if key in {"properties", "$defs"}:
            cleaned[key] = {name: _without_titles(item) for name, item in value.items()}
        elif key in {"default", "examples", "enum", "const"}:
            cleaned[key] = value
        elif key != "title":
            cleaned[key] = _without_titles(value)
    return cleaned


def _with_expressions(node: Any) -> Any:
    """Returns the schema with `${...}` as an alternative of numbers, booleans and enums."""
    if isinstance(node, list):
        return [_with_expressions(item) for item in node]
    if not isinstance(node, dict):
        return node
    schema = {
        key: {name: _with_expressions(item) for name, item in value.items()}
        if key in {"properties", "$defs"}
        else value
        if key in {"default", "examples", "enum", "const"}
        else _with_expressions(value)
        for key, value in node.items()
    }
    if schema.get("type") not in {"integer", "number", "boolean"} and "enum" not in schema:
        return schema
    documentation = {
        key: schema.pop(key) for key in ("description", "default", "examples") if key in schema
    }
    return {"anyOf": [schema, {"$ref": "#/$defs/Expression"}], **documentation}


def _node(shared: Schema, kind: str, types: Mapping[str, Schema], definitions: Schema) -> Schema:
    """Returns the schema of a node with the options of its `type` and no others."""
    properties = dict(shared["properties"])
    properties["type"] = {**properties["type"], "enum": sorted(types)}
    connected = "connection" in properties
    required = [name for name in shared.get("required", []) if name != "type" or not connected]
    node: Schema = {
        "type": "object",
        "description": shared.get("description", ""),
        "properties": properties,
        "required": required,
        "allOf": [],
    }
    if connected:
        node["anyOf"] = [{"required": ["type"]}, {"required": ["connection"]}]
    for name, options in sorted(types.items()):
        key = f"{kind}.{name}"
        definitions[key] = _typed_node(
            properties, name, _import_definitions(options, key, definitions), connected
        )
        node["allOf"].append(_when(name, key))
    return node


def _when(name: str, key: str) -> Schema:
    return {
        "if": {"properties": {"type": {"const": name}}, "required": ["type"]},
        "then": {"$ref": f"#/$defs/{key}"},
    }


def _typed_node(shared: Schema, name: str, options: Schema, connected: bool) -> Schema:
    """Returns the schema of a node of one type; a connection may have the required options."""
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
    documentation = {
        key: value
        for key, value in node["properties"]["format"].items()
        if key in {"description", "default"}
    }
    node["properties"]["format"] = {"$ref": "#/$defs/Format", **documentation}


def _import_definitions(options: Schema, key: str, definitions: Schema) -> Schema:
    """Returns the schema of a component, with its definitions moved to `definitions`."""
    schema = _with_expressions(_without_titles(copy.deepcopy(options)))
    for name, definition in schema.pop("$defs", {}).items():
        definitions[f"{key}.{name}"] = _rename_references(definition, key)
    return dict(_rename_references(schema, key))


def _rename_references(node: Any, key: str) -> Any:
    if isinstance(node, list):
        return [_rename_references(item, key) for item in node]
    if not isinstance(node, dict):
        return node
    renamed = {name: _rename_references(value, key) for name, value in node.items()}
    reference = renamed.get("$ref")
    if isinstance(reference, str) and reference != "#/$defs/Expression":
        renamed["$ref"] = reference.replace("#/$defs/", f"#/$defs/{key}.")
    return renamed
