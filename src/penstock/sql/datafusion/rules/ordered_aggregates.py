"""Aggregates of ordered rows: `array_agg(a ORDER BY t)`, `first_value(a ORDER BY t DESC)`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from penstock.sql.text.calls import too_few_arguments
from penstock.sql.text.edits import Edit
from penstock.sql.text.sql import Call, Sql

_NAMES = ("array_agg", "first_value", "last_value", "nth_value", "string_agg")


class Key(NamedTuple):
    """An expression of ORDER BY."""

    text: str
    descending: bool
    nulls_first: bool

    @property
    def clause(self) -> str:
        """The expression with its direction."""
        direction = "DESC" if self.descending else "ASC"
        return f"{self.text} {direction} NULLS {'FIRST' if self.nulls_first else 'LAST'}"


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields aggregates of Spark. A null is the largest value unless NULLS says otherwise."""
    for call in sql.calls(*_NAMES):
        order = next(
            (
                index
                for index in range(call.opening + 1, call.closing)
                if sql.words(index, "ORDER", "BY") and sql.enclosing(index) == call.opening
            ),
            None,
        )
        if order is None or sql.word(call.closing + 1) == "OVER":
            continue
        start, distinct = call.opening + 1, sql.word(call.opening + 1) == "DISTINCT"
        values = [sql.slice(*part) for part in sql.split(start + distinct, order, ",")]
        keys = [read_key(sql, *part) for part in sql.split(order + 2, call.closing, ",")]
        if not values or not keys:
            raise too_few_arguments(sql, call)
        text, last = _aggregate(sql, call, values, keys, distinct)
        yield [Edit(sql[call.name].start, sql[last].end, text)]


def _aggregate(
    sql: Sql, call: Call, values: Sequence[str], keys: Sequence[Key], distinct: bool
) -> tuple[str, int]:
    """Returns the aggregate of Spark, and the last token that it replaces."""
    name = sql[call.name].value.lower()
    if name == "string_agg":
        order = ", ".join(key.clause for key in keys)
        word = "DISTINCT " if distinct else ""
        return (
            f"string_agg({word}{', '.join(values)}) WITHIN GROUP (ORDER BY {order})",
            call.closing,
        )
    filter_, last = _filter(sql, call, values[0])
    if name in ("first_value", "last_value") and len({key.descending for key in keys}) == 1:
        by = "min_by" if (name == "first_value") != keys[0].descending else "max_by"
        return f"{by}({values[0]}, struct({', '.join(map(_rank, keys))})){filter_}", last
    rows = _sorted(values[0], keys, distinct, filter_)
    places = {"array_agg": None, "first_value": "1", "last_value": "-1"}
    place = places.get(name, values[-1])
    return (rows if place is None else f"try_element_at({rows}, {place})"), last


def _filter(sql: Sql, call: Call, value: str) -> tuple[str, int]:
    """Returns the FILTER clause of a call, also for IGNORE NULLS, and its last token."""
    after = call.closing + 1
    if sql.words(after, "IGNORE", "NULLS"):
        return f" FILTER (WHERE {value} IS NOT NULL)", after + 1
    if sql.word(after) == "FILTER" and sql.is_sign(after + 1, "("):
        last = sql.closing.get(after + 1, after + 1)
        return f" {sql.slice(after, last + 1)}", last
    return "", call.closing


def read_key(sql: Sql, first: int, last: int) -> Key:
    """Returns an expression of ORDER BY. A null is the largest value without NULLS."""
    nulls = None
    if sql.word(last - 2) == "NULLS":
        nulls, last = sql.word(last - 1) == "FIRST", last - 2
    descending = sql.word(last - 1) == "DESC"
    if sql.word(last - 1) in ("ASC", "DESC"):
        last -= 1
    return Key(sql.slice(first, last), descending, descending if nulls is None else nulls)


def _rank(key: Key) -> str:
    """Returns the fields of a struct that has the order of the key, or the reverse order."""
    null = "IS NULL" if key.descending == key.nulls_first else "IS NOT NULL"
    return f"{key.text} {null}, {key.text}"


def _sorted(value: str, keys: Sequence[Key], distinct: bool, filter_: str) -> str:
    """Returns the array of values in the order of the keys."""
    function = "collect_set" if distinct else "collect_list"
    rows = f"{function}(struct({key_fields(keys)}{value} AS _value)){filter_}"
    return f"{SORTED}{rows}{by_keys(keys)}"


SORTED = "transform(array_sort("
"""The text before an array of structs of keys and a value; the text after it is `by_keys`."""


def key_fields(keys: Sequence[Key]) -> str:
    """Returns the fields of the keys in a struct, before its other fields."""
    return "".join(f"{key.text} AS _key{number}, " for number, key in enumerate(keys))


def by_keys(keys: Sequence[Key]) -> str:
    """Returns the text after an array of structs that sorts it and selects its values."""
    cases = "".join(_comparison(f"_key{number}", key) for number, key in enumerate(keys))
    return f", (_left, _right) -> CASE{cases} ELSE 0 END), _row -> _row._value)"


def _comparison(name: str, key: Key) -> str:
    left, right = f"_left.{name}", f"_right.{name}"
    null, less = (-1 if key.nulls_first else 1), (1 if key.descending else -1)
    return (
        f" WHEN {left} IS NULL AND {right} IS NOT NULL THEN {null}"
        f" WHEN {left} IS NOT NULL AND {right} IS NULL THEN {-null}"
        f" WHEN {left} < {right} THEN {less} WHEN {left} > {right} THEN {-less}"
    )
