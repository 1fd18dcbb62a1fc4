"""Default values of Avro schemas, which fastavro takes from the JSON of the schema unchanged."""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Any

from penstock.core.errors import PlanError
from penstock.sdk.columns.schema_errors import invalid_schema

_EXACT = Context(prec=1000)


@invalid_schema("Avro schema")
def convert_defaults(codec: Any) -> Any:
    """Converts the defaults of a parsed schema, in place, to the values that fastavro reads.

    `bytes`, `fixed` and decimals are texts with a character for each byte. A record lacks the
    fields that have defaults of their own. A default of a union has the type of one of its types,
    in Avro before 1.12 the first. Raises PlanError for a record that is its own default.
    """
    try:
        for branch in codec if isinstance(codec, list) else [codec]:
            named = branch.get("__named_schemas", {}) if isinstance(branch, dict) else {}
            seen: set[int] = set()
            for datum in (branch, *named.values()):
                _convert_fields(datum, named, seen)
    except RecursionError:
        raise PlanError("a default of the Avro schema is endless", code="invalid-schema") from None
    return codec


def _convert_fields(datum: Any, named: dict[str, Any], seen: set[int]) -> None:
    """Converts the defaults of the fields within a type."""
    if isinstance(datum, list):
        for branch in datum:
            _convert_fields(branch, named, seen)
    if not isinstance(datum, dict) or id(datum) in seen:
        return
    seen.add(id(datum))
    for key in ("type", "items", "values"):
        _convert_fields(datum.get(key), named, seen)
    for field in datum.get("fields", ()):
        _convert_fields(field["type"], named, seen)
        if "default" in field:
            field["default"] = _value(field["default"], field["type"], named)


def _value(default: Any, datum: Any, named: dict[str, Any]) -> Any:
    if isinstance(datum, str):
        if datum in named:
            return _value(default, named[datum], named)
        return default.encode("latin-1") if _is_text(default, datum, "bytes") else default
    if isinstance(datum, list):
        branch = next((each for each in datum if _fits(default, each, named)), datum[0])
        return _value(default, branch, named)
    kind = datum["type"]
    if datum.get("logicalType") == "decimal" and isinstance(default, str):
        unscaled = int.from_bytes(default.encode("latin-1"), "big", signed=True)
        return Decimal(unscaled).scaleb(-datum.get("scale", 0), _EXACT)
    if _is_text(default, kind, "bytes", "fixed"):
        return default.encode("latin-1")
    if kind == "array" and isinstance(default, list):
        return [_value(item, datum["items"], named) for item in default]
    if kind == "map" and isinstance(default, dict):
        return {key: _value(item, datum["values"], named) for key, item in default.items()}
    if kind in ("record", "error") and isinstance(default, dict):
        return {field["name"]: _field(default, field, named) for field in datum["fields"]}
    return _value(default, kind, named) if isinstance(kind, dict | list) else default


def _field(record: dict[str, Any], field: dict[str, Any], named: dict[str, Any]) -> Any:
    default = record.get(field["name"], field.get("default"))
    return _value(default, field["type"], named)


def _is_text(default: Any, kind: Any, *kinds: str) -> bool:
    return isinstance(default, str) and kind in kinds


def _fits(default: Any, datum: Any, named: dict[str, Any]) -> bool:
    """Returns whether a default has the JSON type of a branch of a union."""
    if isinstance(datum, str) and datum in named:
        datum = named[datum]
    kind = datum["type"] if isinstance(datum, dict) else datum
    if isinstance(default, bool):
        return bool(kind == "boolean")
    if default is None:
        return bool(kind == "null")
    if isinstance(default, str | bytes):
        return kind in ("string", "bytes", "fixed", "enum")
    if isinstance(default, int):
        return kind in ("int", "long", "float", "double")
    if isinstance(default, float):
        return kind in ("float", "double")
    if isinstance(default, list):
        return bool(kind == "array")
    return kind in ("record", "error", "map")
