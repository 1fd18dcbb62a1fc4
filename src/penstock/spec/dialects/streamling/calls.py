"""Calls of functions that Spark has not, or with another meaning, as expressions of Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from penstock.core.names import quote_name
from penstock.spec.dialects.streamling.functions import MISSING
from penstock.sql.text.calls import literal, rewrite_call
from penstock.sql.text.edits import Edit, Translation, without_overlaps
from penstock.sql.text.sql import Call, Sql, read_sql

_MAX_ROUNDS = 100
_NULL = "CAST(NULL AS STRING)"
_ITEM = "to_json(named_struct('v', {%d}), map('ignoreNullFields', 'false'))"
_JSON = _ITEM % 0
_EXTRACT = "CASE WHEN regexp_like({0}, {1}) THEN spark_regexp_extract({0}, {1}, %s) END"
_SERIES = (
    "CASE WHEN %s = 0 THEN raise_error('the step of a series is 0') "
    "WHEN sign(CAST({1} AS DOUBLE) - {0}) * %s < 0 THEN CAST(array() AS ARRAY<BIGINT>) "
    "ELSE sequence(CAST({0} AS BIGINT), CAST({1} AS BIGINT), CAST(%s AS BIGINT)) END"
)
_TEMPLATES = {
    ("_gs_generate_series", 2): _SERIES % ("1", "1", "1"),
    ("_gs_generate_series", 3): _SERIES % ("{2}", "{2}", "{2}"),
    ("_gs_map_to_array_struct", 1): "map_entries({0})",
    ("_gs_split_string_to_array", 1): "string_to_array({0}, ' ')",
    ("_gs_split_string_to_array", 2): "string_to_array({0}, {1})",
    ("array_enumerate", 1): (
        "transform({0}, (_item, _index) -> "
        "named_struct('index', CAST(_index AS BIGINT), 'value', _item))"
    ),
    ("charlength", 1): "char_length({0})",
    ("hex", 1): "to_hex({0})",
    ("instr", 3): "flink_instr({0}, {1}, {2}, 1)",
    ("instr", 4): "flink_instr({0}, {1}, {2}, {3})",
    ("is_json", 1): "flink_is_json({0}, 'VALUE')",
    ("is_json", 2): "flink_is_json({0}, {1})",
    ("json", 1): "flink_json({0})",
    ("json_exists", 2): "flink_json_exists({0}, {1}, 'FALSE')",
    ("json_exists", 3): "flink_json_exists({0}, {1}, {2})",
    ("json_string", 1): (
        f"CASE WHEN {{0}} IS NOT NULL THEN substr({_JSON}, 6, char_length({_JSON}) - 6) END"
    ),
    ("lowercase", 1): "lower({0})",
    ("parse_json", 1): "flink_json({0})",
    ("parse_json", 2): "flink_json({0})",
    ("parse_url", 2): "try_parse_url({0}, {1})",
    ("parse_url", 3): "try_parse_url({0}, {1}, {2})",
    ("regexp", 2): "regexp_like({0}, {1})",
    ("regexp_extract", 2): _EXTRACT % "0",
    ("regexp_extract", 3): _EXTRACT % "{2}",
    ("similar", 2): "regexp_like({0}, {1})",
    ("split", 2): "flink_split({0}, {1})",
    ("to_large_list", 1): "({0})",
    ("translate3", 3): "translate({0}, {1}, {2})",
    ("try_parse_json", 1): "flink_try_json({0})",
    ("try_parse_json", 2): "flink_try_json({0})",
    ("uppercase", 1): "upper({0})",
    ("url_decode", 1): "try_url_decode({0})",
}
_OF_JSON = {
    "json_array": "flink_json_array(array({}), false)",
    "json_array_absent_on_null": "flink_json_array(array({}), true)",
    "json_object": "flink_json_object(array({}), array({}), false)",
    "json_object_absent_on_null": "flink_json_object(array({}), array({}), true)",
}
_FIELDS = {
    "array_filter": (3, "filter({0}, _item -> _item.{field} = {2})"),
    "array_filter_first": (3, "try_element_at(filter({0}, _item -> _item.{field} = {2}), 1)"),
    "array_filter_in": (3, "filter({0}, _item -> array_contains({2}, _item.{field}))"),
    "array_struct_field": (2, "transform({0}, _item -> _item.{field})"),
}
"""Functions of a field of structs: the number of arguments, and the expression."""
_TYPES = {"STRING": "", "VARCHAR": "", "BOOLEAN": "BOOLEAN", "INT": "INT", "INTEGER": "INT",
          "BIGINT": "BIGINT", "DOUBLE": "DOUBLE"}  # fmt: skip
"""The types of `json_value`, and those of Spark."""
TRANSLATED = frozenset({*(name for name, _ in _TEMPLATES), *_OF_JSON, *_FIELDS, "coalesce_meta",
                        "elt", "_gs_zip_arrays", "json_value", "json_query"})  # fmt: skip
"""The functions whose calls are translated."""
_FEWEST, _MOST = 2, {"json_value": 7, "json_query": 6}


class UnsupportedCall(NamedTuple):
    """A call without a counterpart: the place of its name, and the reason."""

    name: str
    start: int
    end: int
    reason: str


def translate_calls(translation: Translation) -> Translation:
    """Returns a query in which calls have the names and the arguments of Spark."""
    for _ in range(_MAX_ROUNDS):
        sql = read_sql(translation.text)
        edits = without_overlaps(_calls(sql)) if sql is not None else []
        if not edits:
            break
        translation = translation.edit(edits)
    sql = read_sql(translation.text)
    renamed = list(_renamed(sql)) if sql is not None else []
    return translation.edit(renamed) if renamed else translation


def unsupported_calls(text: str) -> Iterator[UnsupportedCall]:
    """Yields the calls of a query that have no counterpart."""
    sql = read_sql(text)
    if sql is None:
        return
    for call in sql.calls():
        token, reason = sql[call.name], _reason(sql, call)
        if reason is not None:
            yield UnsupportedCall(token.value.lower(), token.start, token.end, reason)


def _reason(sql: Sql, call: Call) -> str | None:
    """Returns why a call has no counterpart; None if it has one."""
    name = sql[call.name].value.lower()
    if name not in _FIELDS or len(call.arguments) != _FIELDS[name][0]:
        return MISSING.get(name)
    is_literal = literal(sql, call.arguments[1]) is not None
    return None if is_literal else "write the name of the field as a text in quotes"


def _calls(sql: Sql) -> Iterator[list[Edit]]:
    for call in sql.calls():
        name, count = sql[call.name].value.lower(), len(call.arguments)
        template = _TEMPLATES.get((name, count)) or _template(sql, call, name, count)
        if template is not None:
            yield rewrite_call(sql, call, template)


def _template(sql: Sql, call: Call, name: str, count: int) -> str | None:
    """Returns the template of a call that depends on its arguments; None for other functions."""
    numbers = range(count)
    if name in _FIELDS and count == _FIELDS[name][0]:
        field = literal(sql, call.arguments[1])
        return None if field is None else _FIELDS[name][1].replace("{field}", quote_name(field))
    if name == "coalesce_meta" and count:
        return f"coalesce({_places(numbers)})"
    if name == "elt" and count > 1:
        position = "CASE WHEN {0} > 0 THEN CAST({0} AS INT) END"
        return f"try_element_at(array({_places(numbers[1:])}), {position})"
    if name == "_gs_zip_arrays" and count > 1:
        return _zipped(count)
    if name in _OF_JSON:
        return _of_json(name, count)
    if name in _MOST and _FEWEST <= count <= _MOST[name]:
        return _json_value(sql, call, count) if name == "json_value" else _json_query(count)
    return None


def _places(numbers: Sequence[int]) -> str:
    return ", ".join(f"{{{number}}}" for number in numbers)


def _zipped(count: int) -> str:
    """Returns the template of structs of the items of arrays, which have the same length."""
    fields = ", ".join(f"'f{n}', get({{{n}}}, _index)" for n in range(1, count))
    differ = " OR ".join(f"size({{{n}}}) <> size({{0}})" for n in range(1, count))
    return (
        f"CASE WHEN {differ} THEN raise_error('the arrays of _gs_zip_arrays have other lengths') "
        f"ELSE transform({{0}}, (_item, _index) -> named_struct('f0', _item, {fields})) END"
    )


def _of_json(name: str, count: int) -> str:
    numbers = range(count)
    if "array" in name:
        items = ", ".join(_ITEM % number for number in numbers)
        return _OF_JSON[name].format(items)
    keys = ", ".join(f"CAST({{{n}}} AS STRING)" for n in numbers[::2])
    items = ", ".join(_ITEM % number for number in numbers[1::2])
    return _OF_JSON[name].format(keys, items)


def _json_value(sql: Sql, call: Call, count: int) -> str:
    others = [f"{{{number}}}" if number < count else _NULL for number in range(3, 7)]
    found = f"flink_json_value({', '.join(['{0}', '{1}', *others])})"
    name = literal(sql, call.arguments[2]) if count > _FEWEST else None
    type_ = _TYPES.get((name or "STRING").upper(), "")
    return f"CAST({found} AS {type_})" if type_ else found


def _json_query(count: int) -> str:
    others = [f"{{{number}}}" if number < count else _NULL for number in range(3, 6)]
    return f"flink_json_query({', '.join(['{0}', '{1}', *others])})"


def _renamed(sql: Sql) -> Iterator[Edit]:
    """Yields the names of functions of Spark that have another meaning in Streamling."""
    for call in sql.calls("spark_regexp_extract"):
        start = sql[call.name].start
        yield Edit(start, start + len("spark_"), "")
