"""Conversion between JSON Schema and columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.core.errors import PlanError
from penstock.formats.json.decimals import Forms
from penstock.sdk.columns.json_mark import is_json
from penstock.sdk.columns.scalar_parsing import Times
from penstock.sdk.columns.schema_errors import invalid_schema
from penstock.sdk.columns.type_names import is_list

_TYPES = {
    "string": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
}
_TEXT = {"date": pa.date32(), "date-time": pa.timestamp("us", "UTC")}


@invalid_schema("JSON Schema")
def columns_of(schema: Any, others: Mapping[str, Any], times: Times) -> pa.Schema:
    """Returns the columns of an object's schema. `others` are referenced schemas by name.

    A value of several types, of a recursive type or without a type is its JSON text. Raises
    PlanError for an invalid schema and for a schema of another type than object.
    """
    type_ = _SchemaReader(others, times).type_of(schema, schema, ())
    if not pa.types.is_struct(type_):
        raise PlanError("expected the JSON Schema of an object", code="unsupported-type")
    return pa.schema(list(type_))


class _SchemaReader:
    def __init__(self, others: Mapping[str, Any], times: Times) -> None:
        self.others, self.times = others, times

    def type_of(self, schema: Any, root: Any, within: tuple[str, ...]) -> pa.DataType:
        if not isinstance(schema, dict):
            return pa.string()
        if "$ref" in schema:
            return self._resolve_reference(schema["$ref"], root, within)
        choices = _choices(schema)
        if len(choices) == 1:
            return self.type_of(choices[0], root, within)
        if choices:
            return pa.string()
        kinds = _kinds(schema)
        if kinds == ["object"]:
            return self._object(schema, root, within)
        if kinds == ["array"]:
            items = schema.get("items")
            element = self.type_of(items, root, within)
            return pa.list_(pa.field("element", element, _nullable(items)))
        if kinds == ["string"]:
            return self._text(schema)
        if sorted(kinds) == ["integer", "number"]:
            return pa.float64()
        return _TYPES.get(kinds[0], pa.string()) if len(kinds) == 1 else pa.string()

    def _text(self, schema: dict[str, Any]) -> pa.DataType:
        if schema.get("contentEncoding") == "base64":
            return pa.binary()
        type_ = _TEXT.get(str(schema.get("format")), pa.string())
        return pa.string() if pa.types.is_timestamp(type_) and self.times != "iso" else type_

    def _object(self, schema: dict[str, Any], root: Any, within: tuple[str, ...]) -> pa.DataType:
        properties, additional = schema.get("properties"), schema.get("additionalProperties")
        if not properties:
            values = (
                self.type_of(additional, root, within)
                if isinstance(additional, dict)
                else pa.string()
            )
            return pa.map_(pa.string(), pa.field("value", values, _nullable(additional)))
        required = schema.get("required", ())
        return pa.struct(
            [
                pa.field(
                    name,
                    self.type_of(value, root, within),
                    name not in required or _nullable(value),
                )
                for name, value in properties.items()
            ]
        )

    def _resolve_reference(self, reference: str, root: Any, within: tuple[str, ...]) -> pa.DataType:
        name, _, pointer = reference.partition("#")
        if name and name not in self.others:
            raise PlanError(f'the JSON Schema refers to "{name}"', code="unsupported-type")
        root = self.others[name] if name else root
        target_id = f"{name or id(root)}#{pointer}"
        if target_id in within:
            return pa.string()
        target = root
        for step in filter(None, pointer.split("/")):
            key = step.replace("~1", "/").replace("~0", "~")
            target = target.get(key) if isinstance(target, dict) else None
        if target is None:
            raise PlanError(f'there is no "{reference}" in the JSON Schema', code="invalid-schema")
        return self.type_of(target, root, (*within, target_id))


def _choices(schema: dict[str, Any]) -> list[Any]:
    """Returns the alternatives of a schema, without null."""
    alternatives = schema.get("oneOf") or schema.get("anyOf") or []
    return [choice for choice in alternatives if choice != {"type": "null"}]


def _kinds(schema: dict[str, Any]) -> list[str]:
    kind = schema.get("type")
    if kind is None:
        if "properties" in schema:
            return ["object"]
        values = [*schema.get("enum", ()), *([schema["const"]] if "const" in schema else ())]
        return ["string"] if values and all(isinstance(value, str) for value in values) else []
    kinds = [kind] if isinstance(kind, str) else kind
    return [name for name in kinds if name != "null"]


def _nullable(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return True
    kind = schema.get("type")
    if kind is not None:
        return kind == "null" or (not isinstance(kind, str) and "null" in kind)
    choices = schema.get("oneOf") or schema.get("anyOf")
    return bool(choices is None and "$ref" not in schema) or {"type": "null"} in (choices or ())


def json_schema(columns: pa.Schema, forms: Forms) -> dict[str, Any]:
    """Returns the JSON Schema of rows with these columns."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "row",
        **_object_schema(list(columns), forms),
    }


def _object_schema(fields: Sequence[pa.Field], forms: Forms) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {field.name: _field(field, forms) for field in fields},
        "additionalProperties": False,
    }
    required = [field.name for field in fields if not field.nullable]
    return {**schema, "required": required} if required else schema


def _field(field: pa.Field, forms: Forms) -> dict[str, Any]:
    if is_json(field):
        return {}
    schema = _type(field.type, forms)
    return {"oneOf": [{"type": "null"}, schema]} if field.nullable else schema


def _type(type_: pa.DataType, forms: Forms) -> dict[str, Any]:
    if pa.types.is_struct(type_):
        return _object_schema(list(type_), forms)
    if is_list(type_):
        return {"type": "array", "items": _field(type_.value_field, forms)}
    if pa.types.is_map(type_):
        return {"type": "object", "additionalProperties": _field(type_.item_field, forms)}
    if pa.types.is_timestamp(type_):
        return (
            {"type": "string", "format": "date-time"}
            if forms.times == "iso"
            else {"type": "integer"}
        )
    if pa.types.is_date(type_):
        return {"type": "string", "format": "date"}
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        return {"type": "string", "contentEncoding": "base64"}
    if pa.types.is_boolean(type_):
        return {"type": "boolean"}
    if pa.types.is_integer(type_):
        return {"type": "integer"}
    is_number = pa.types.is_decimal(type_) and forms.decimals == "number"
    if pa.types.is_floating(type_) or is_number:
        return {"type": "number"}
    return {"type": "string"}
