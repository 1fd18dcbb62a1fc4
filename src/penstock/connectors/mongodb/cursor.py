"""The order of documents: filters of ranges, and offsets as Extended JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.connectors.mongodb.client import from_json, to_json

Values = tuple[Any, ...]
Filter = dict[str, Any]


def range_filter(fields: Sequence[str], after: Values | None, upto: Values | None) -> Filter:
    """Returns the filter of documents after a position, up to another one."""
    conditions = []
    if after is not None:
        conditions.append(_beyond(fields, after, "$gt", "$gt"))
    if upto is not None:
        conditions.append(_beyond(fields, upto, "$lt", "$lte"))
    return {"$and": conditions} if len(conditions) > 1 else next(iter(conditions), {})


def start_filter(field: str, upto: Values | None) -> Filter:
    """Returns the filter of all documents that are not after a position, of each kind of value.

    `$lte` would leave out the documents whose values are of another kind.
    """
    assert upto is not None
    return {field: {"$not": {"$gt": upto[0]}}}


def _beyond(fields: Sequence[str], values: Values, operator: str, last: str) -> Filter:
    """Returns the filter of documents beyond a position in the order of several fields."""
    *others, final = range(len(fields))
    terms: list[Filter] = []
    for place in (*others, final):
        equal = {fields[each]: {"$eq": values[each]} for each in range(place)}
        compared = last if place == final else operator
        terms.append({**equal, fields[place]: {compared: values[place]}})
    if len(terms) == 1:
        return terms[0]
    # The bound of the first field lets the server use an index of it.
    return {fields[0]: {f"{operator}e": values[0]}, "$or": terms}


def encode(values: Values) -> list[Any]:
    """Returns values of fields as JSON, with their types."""
    encoded: list[Any] = json.loads(to_json(list(values), canonical=True))
    return encoded


def decode(encoded: Sequence[Any] | None) -> Values | None:
    """Returns values of `encode`."""
    return None if encoded is None else tuple(from_json(json.dumps(encoded)))


def kind_of(value: Any) -> str | None:
    """Returns the kind of a value; None for values that have no place in the order.

    MongoDB compares values of one kind only, so all values of a field must be of one kind.
    """
    name = type(value).__name__
    if isinstance(value, float) and math.isnan(value):
        return None
    if name == "Decimal128" and value.to_decimal().is_nan():
        return None
    return _KINDS.get(name)


_KINDS: Mapping[str, str] = {
    "int": "number", "Int64": "number", "float": "number", "Decimal128": "number",
    "str": "text", "bool": "boolean", "ObjectId": "ObjectId", "datetime": "date",
    "DatetimeMS": "date", "bytes": "binary", "Binary": "binary", "UUID": "binary",
    "Timestamp": "timestamp",
}  # fmt: skip


def sort_key(values: Values) -> tuple[Any, ...]:
    """Returns values of Python in the order of MongoDB, for values of one kind."""
    return tuple(_SORT_KEYS.get(type(value).__name__, _same)(value) for value in values)


def is_after(values: Values, others: Values) -> bool:
    """Returns whether values of single fields are after others in the order of MongoDB.

    Values of another kind are not, as in a filter.
    """
    kinds = [[*map(kind_of, each)] for each in (values, others)]
    return kinds[0] == kinds[1] and sort_key(values) > sort_key(others)


def _same(value: Any) -> Any:
    return value


def _binary_key(value: Any) -> Any:
    content = value.bytes if type(value).__name__ == "UUID" else bytes(value)
    return len(content), getattr(value, "subtype", 0), content


def _time_key(value: Any) -> Any:
    from bson.datetime_ms import DatetimeMS

    return int(value) if isinstance(value, DatetimeMS) else int(DatetimeMS(value))


_SORT_KEYS: Mapping[str, Callable[[Any], Any]] = {
    "Decimal128": lambda value: value.to_decimal(),
    "bytes": _binary_key, "Binary": _binary_key, "UUID": _binary_key,
    "datetime": _time_key, "DatetimeMS": _time_key,
    "str": lambda value: value.encode(errors="surrogatepass"),
}  # fmt: skip
