"""JSON Schema and columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.core.errors import PlanError
from penstock.sdk.kit.columns import is_list
from penstock.sdk.kit.values import Times

_PLAIN = {
    "string": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
}
_TEXT = {"date": pa.date32(), "date-time": pa.timestamp("us", "UTC")}


def columns_of(schema: Any, others: Mapping[str, Any], times: Times) -> pa.Schema:
    """The columns of an object's schema; `others` are schemas by the names it has for them.

    What has no type of its own (a choice of several, no type at all) is text: the value's JSON.
    Raises PlanError where it is not the schema of an object, or contains itself.
    """
    found = _Reading(others, times).type_of(schema, schema, ())
    if not pa.types.is_struct(found):
        raise PlanError("the JSON Schema is not that of an object", code="unsupported-type")
    return pa.schema(list(found))


class _Reading:
    def __init__(self, others: Mapping[str, Any], times: Times) -> None:
        self.others, self.times = others, times

    def type_of(self, schema: Any, root: Any, within: tuple[str, ...]) -> pa.DataType:
        if not isinstance(schema, dict):
            return pa.string()
        if "$ref" in schema:
            return self._referred(schema["$ref"], root, within)
        some = _choices(schema)
        if len(some) == 1:
            return self.type_of(some[0], root, within)
        if some:
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
        return _PLAIN.get(kinds[0], pa.string()) if len(kinds) == 1 else pa.string()

    def _text(self, schema: dict[str, Any]) -> pa.DataType:
        if schema.get("contentEncoding") == "base64":
            return pa.binary()
        found = _TEXT.get(str(schema.get("format")), pa.string())
        return pa.string() if pa.types.is_timestamp(found) and self.times != "iso" else found

    def _object(self, schema: dict[str, Any], root: Any, within: tuple[str, ...]) -> pa.DataType:
        properties, more = schema.get("properties"), schema.get("additionalProperties")
        if not properties:
            values = self.type_of(more, root, within) if isinstance(more, dict) else pa.string()
            return pa.map_(pa.string(), pa.field("value", values, _nullable(more)))
        needed = schema.get("required", ())
        return pa.struct(
            [
                pa.field(
                    name, self.type_of(each, root, within), name not in needed or _nullable(each)
                )
                for name, each in properties.items()
            ]
        )

    def _referred(self, reference: str, root: Any, within: tuple[str, ...]) -> pa.DataType:
        name, _, place = reference.partition("#")
        if name and name not in self.others:
            raise PlanError(f'the JSON Schema refers to "{name}"', code="unsupported-type")
        root = self.others[name] if name else root
        here = f"{name or id(root)}#{place}"
        if here in within:
            raise PlanError(
                f'"{reference}" of JSON Schema contains itself', code="unsupported-type"
            )
        found = root
        for step in filter(None, place.split("/")):
            key = step.replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, dict) else None
        if found is None:
            raise PlanError(f'there is no "{reference}" in the JSON Schema', code="invalid-schema")
        return self.type_of(found, root, (*within, here))


def _choices(schema: dict[str, Any]) -> list[Any]:
    """The alternatives of a choice, without null."""
    some = schema.get("oneOf") or schema.get("anyOf") or []
    return [each for each in some if each != {"type": "null"}]


def _kinds(schema: dict[str, Any]) -> list[str]:
    kind = schema.get("type")
    if kind is None:
        if "properties" in schema:
            return ["object"]
        values = [*schema.get("enum", ()), *([schema["const"]] if "const" in schema else ())]
        return ["string"] if values and all(isinstance(each, str) for each in values) else []
    return [each for each in ([kind] if isinstance(kind, str) else kind) if each != "null"]


def _nullable(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return True
    kind = schema.get("type")
    if kind is not None:
        return kind == "null" or (not isinstance(kind, str) and "null" in kind)
    some = schema.get("oneOf") or schema.get("anyOf")
    return bool(some is None and "$ref" not in schema) or {"type": "null"} in (some or ())


def json_schema(columns: pa.Schema, times: Times) -> dict[str, Any]:
    """The schema of the objects that rows of these columns become."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "row",
        **_object_schema(list(columns), times),
    }


def _object_schema(fields: Sequence[pa.Field], times: Times) -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": "object",
        "properties": {field.name: _field(field, times) for field in fields},
        "additionalProperties": False,
    }
    needed = [field.name for field in fields if not field.nullable]
    return {**found, "required": needed} if needed else found


def _field(field: pa.Field, times: Times) -> dict[str, Any]:
    schema = _type(field.type, times)
    return {"oneOf": [{"type": "null"}, schema]} if field.nullable else schema


def _type(type_: pa.DataType, times: Times) -> dict[str, Any]:
    if pa.types.is_struct(type_):
        return _object_schema(list(type_), times)
    if is_list(type_):
        return {"type": "array", "items": _field(type_.value_field, times)}
    if pa.types.is_map(type_):
        return {"type": "object", "additionalProperties": _field(type_.item_field, times)}
    if pa.types.is_timestamp(type_):
        return {"type": "string", "format": "date-time"} if times == "iso" else {"type": "integer"}
    if pa.types.is_date(type_):
        return {"type": "string", "format": "date"}
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        return {"type": "string", "contentEncoding": "base64"}
    if pa.types.is_boolean(type_):
        return {"type": "boolean"}
    if pa.types.is_integer(type_):
        return {"type": "integer"}
    if pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        return {"type": "number"}
    return {"type": "string"}
