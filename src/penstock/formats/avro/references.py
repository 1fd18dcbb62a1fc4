"""Avro schemas of a registry that mention types of other schemas there."""

from __future__ import annotations

from typing import Any

from penstock.formats.avro.datum import parsed
from penstock.sdk.kit.avrotypes import plain
from penstock.sdk.kit.registry import Registered, Registry


def inlined(schema: Registered, registry: Registry) -> Any:
    """The parsed schema, with the types that it takes from others in their first place."""
    if not schema.references:
        return parsed(schema.text)
    named: dict[str, Any] = {}
    return parsed(_whole(plain(_loaded(schema, registry, named, set())), named, set()))


def _loaded(schema: Registered, registry: Registry, named: dict[str, Any], seen: set[int]) -> Any:
    """The schema, parsed after those that it mentions, whose types are in `named` then."""
    for _, other in registry.referenced(schema):
        if other.id not in seen:
            seen.add(other.id)
            _loaded(other, registry, named, seen)
    return parsed(schema.text, named)


def _whole(datum: Any, named: dict[str, Any], seen: set[str]) -> Any:
    if isinstance(datum, list):
        return [_whole(each, named, seen) for each in datum]
    if isinstance(datum, str):
        if datum not in named or datum in seen:
            return datum
        return _whole(plain(named[datum]), named, seen)
    if "name" in datum:
        seen.add(datum["name"])
    found = dict(datum)
    for key in ("type", "items", "values"):
        if key in datum:
            found[key] = _whole(datum[key], named, seen)
    if "fields" in datum:
        found["fields"] = [
            {**each, "type": _whole(each["type"], named, seen)} for each in datum["fields"]
        ]
    return found
