"""References between Avro schemas in a registry."""

from __future__ import annotations

from typing import Any

from penstock.formats.avro.datum import parse_schema
from penstock.sdk.columns.avro_schemas import strip_parsed_keys
from penstock.sdk.schema_registry import Registered, Registry


def inline_references(schema: Registered, registry: Registry) -> Any:
    """Returns the parsed schema with referenced types inlined at first use."""
    if not schema.references:
        return parse_schema(schema.text)
    named: dict[str, Any] = {}
    datum = strip_parsed_keys(_load(schema, registry, named, set()))
    return parse_schema(_inline(datum, named, set()))


def _load(schema: Registered, registry: Registry, named: dict[str, Any], seen: set[int]) -> Any:
    """Parses a schema after its references, and adds their types to `named`."""
    for _, other in registry.get_references(schema):
        if other.id not in seen:
            seen.add(other.id)
            _load(other, registry, named, seen)
    return parse_schema(schema.text, named)


def _inline(datum: Any, named: dict[str, Any], seen: set[str]) -> Any:
    if isinstance(datum, list):
        return [_inline(branch, named, seen) for branch in datum]
    if isinstance(datum, str):
        if datum not in named or datum in seen:
            return datum
        return _inline(strip_parsed_keys(named[datum]), named, seen)
    if "name" in datum:
        seen.add(datum["name"])
    inlined = dict(datum)
    for key in ("type", "items", "values"):
        if key in datum:
            inlined[key] = _inline(datum[key], named, seen)
    if "fields" in datum:
        inlined["fields"] = [
            {**field, "type": _inline(field["type"], named, seen)} for field in datum["fields"]
        ]
    return inlined
