"""Parsed Avro schemas: records, named types, and properties of types."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.core.errors import PlanError
from penstock.sdk.columns.schema_errors import invalid_schema

TIMES = {
    "date": pa.date32(),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "timestamp-nanos": pa.timestamp("ns", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-nanos": pa.timestamp("ns"),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
}
"""The logical types of times."""
_KINDS = ("array", "map", "enum")
RECORDS = ("record", "error")
"""The types of records."""


@invalid_schema("Avro schema")
def records_of(datum: Any) -> list[tuple[str, Any]]:
    """Returns the full names and schemas of a record, or of the records of a union, in order.

    Raises PlanError for other types.
    """
    named = named_types(datum)
    branches = datum if isinstance(datum, list) else [datum]
    records = [named.get(each, each) if isinstance(each, str) else each for each in branches]
    if not all(isinstance(each, dict) and each["type"] in RECORDS for each in records):
        raise PlanError("the Avro schema is not a record", code="unsupported-type")
    return [(each["name"], each) for each in records]


def without_times(datum: Any) -> Any:
    """Returns the schema with times as numbers, for conversion to Arrow without a copy."""
    if isinstance(datum, list):
        return [without_times(branch) for branch in datum]
    if not isinstance(datum, dict):
        return datum
    is_time = datum.get("logicalType") in TIMES
    return {
        key: without_times(value)
        for key, value in datum.items()
        if not (is_time and key == "logicalType") and not key.startswith("__")
    }


def strip_parsed_keys(datum: Any) -> Any:
    """Returns the schema without the keys that fastavro adds."""
    if isinstance(datum, list):
        return [strip_parsed_keys(branch) for branch in datum]
    if not isinstance(datum, dict):
        return datum
    return {
        key: strip_parsed_keys(value) for key, value in datum.items() if not key.startswith("__")
    }


def named_types(datum: Any) -> dict[str, Any]:
    """Returns the named types of a parsed schema."""
    branches = datum if isinstance(datum, list) else [datum]
    named: dict[str, Any] = {}
    for branch in branches:
        named |= branch.get("__named_schemas", {}) if isinstance(branch, dict) else {}
    return named


@invalid_schema("Avro schema")
def check_arrays(datum: Any) -> None:
    """Raises PlanError for an array of values without bytes, anywhere in a parsed schema.

    A payload of a few bytes could hold any number of such values.
    """
    _check_arrays(datum, named_types(datum), "", set())


def _check_arrays(datum: Any, named: dict[str, Any], name: str, seen: set[str]) -> None:
    for branch in datum if isinstance(datum, list) else ():
        _check_arrays(branch, named, name, seen)
    if not isinstance(datum, dict) or datum.get("name") in seen:
        return
    if datum["type"] in RECORDS:
        seen.add(datum["name"])
        for field in datum["fields"]:
            _check_arrays(field["type"], named, field["name"], seen)
        return
    if datum["type"] == "array" and _has_no_bytes(datum["items"], named, set()):
        raise PlanError(
            f'an array of values without bytes (Avro field "{name}")', code="unsupported-type"
        )
    for key in ("type", "items", "values"):
        _check_arrays(datum.get(key), named, name, seen)


@invalid_schema("Avro schema")
def is_recursive(datum: Any) -> bool:
    """Returns whether a parsed schema has a record within itself."""
    return _contains_itself(datum, named_types(datum), (), set())


def _contains_itself(
    datum: Any, named: dict[str, Any], within: tuple[str, ...], done: set[str]
) -> bool:
    """Returns whether a type has a record within itself. `done` are records that have none."""
    if isinstance(datum, str):
        datum = named.get(datum)
    if isinstance(datum, list):
        return any(_contains_itself(branch, named, within, done) for branch in datum)
    if not isinstance(datum, dict) or datum.get("name") in done:
        return False
    if datum["type"] not in RECORDS:
        parts = [datum.get(key) for key in ("type", "items", "values")]
        return any(_contains_itself(part, named, within, done) for part in parts)
    name = datum["name"]
    types = (field["type"] for field in datum["fields"])
    inside = (*within, name)
    if name in within or any(_contains_itself(type_, named, inside, done) for type_ in types):
        return True
    done.add(name)
    return False


def _has_no_bytes(datum: Any, named: dict[str, Any], sized: set[str]) -> bool:
    """Returns whether values have no bytes. `sized` are records that have some, or are checked."""
    if isinstance(datum, str):
        return datum == "null" or (datum in named and _has_no_bytes(named[datum], named, sized))
    if isinstance(datum, list) or datum["type"] in _KINDS or datum.get("name") in sized:
        return False
    if datum["type"] in RECORDS:
        sized.add(datum["name"])
        empty = all(_has_no_bytes(field["type"], named, sized) for field in datum["fields"])
        sized -= {datum["name"]} if empty else set()
        return empty
    if datum["type"] == "fixed":
        return bool(datum["size"] == 0)
    return _has_no_bytes(datum["type"], named, sized)
