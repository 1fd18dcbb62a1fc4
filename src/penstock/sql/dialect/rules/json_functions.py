"""Functions of JSON texts: `json_get_str(a, 'key')`, `extract_json(a, '$.key')`."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sql.dialect.calls import literal, quote, rewrite_call
from penstock.sql.dialect.json_path import (
    FIND_VALUES,
    PATH_FUNCTIONS,
    is_path_of_one_value,
    json_text,
    path_of,
    path_problem,
)
from penstock.sql.dialect.text import DialectError, Edit
from penstock.sql.dialect.tokens import Call, Sql

_TEXT = "get_json_object({{0}}, {path})"
_TYPED = "try_variant_get(try_parse_json({{0}}), {path}, '{type}')"
_BY_KEYS = {
    "json_get_str": _TYPED.replace("{type}", "string"),
    "json_as_text": _TEXT,
    "json_get_int": _TYPED.replace("{type}", "bigint"),
    "json_get_float": _TYPED.replace("{type}", "double"),
    "json_get_bool": _TYPED.replace("{type}", "boolean"),
    "json_get": "to_json(" + _TYPED.replace("{type}", "variant") + ")",
    "json_get_json": "to_json(" + _TYPED.replace("{type}", "variant") + ")",
    "json_get_array": "transform(" + _TYPED.replace("{type}", "array<variant>")
    + ", item -> to_json(item))",
    "json_contains": "(" + _TYPED.replace("{type}", "variant") + " IS NOT NULL)",
    "json_length": "coalesce(size(" + _TYPED.replace("{type}", "array<variant>")
    + "), array_size(json_object_keys(" + _TEXT + ")))",
}  # fmt: skip
"""Functions whose further arguments are keys and indexes."""


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields functions of Spark."""
    for call in sql.calls(*_BY_KEYS):
        if call.arguments:
            template = _BY_KEYS[sql[call.name].value.lower()]
            path = quote(path_of([_step(sql, part) for part in call.arguments[1:]]))
            yield rewrite_call(sql, call, template.replace("{path}", path).replace("{{0}}", "{0}"))
    for call in sql.calls(*PATH_FUNCTIONS):
        if len(call.arguments) == 2:
            yield rewrite_call(sql, call, _by_path(sql, call))


def _by_path(sql: Sql, call: Call) -> str:
    """Returns the template of a function of a path.

    `extract_json` is null only for a text that is not JSON: a missing path gives an empty list.
    """
    name, path = sql[call.name].value.lower(), literal(sql, call.arguments[1])
    if path is None or not is_path_of_one_value(path.removesuffix("[*]")):
        _check_path(sql, call.arguments[1], path)
        return _of_values(name, f"{FIND_VALUES}({{0}}, {{1}})")
    before, after = json_text("{1}")
    if path.endswith("[*]"):
        value = f"try_variant_get(try_parse_json({{0}}), {quote(path[:-3])}, "
        items = f"{value}'array<variant>'), map_values({value}'map<string,variant>'))"
        found = f"transform(coalesce({items}, array()), item -> to_json(item))"
    elif name == "extract_json_string":
        kind = "schema_of_variant(try_variant_get(try_parse_json({0}), {1}, 'variant'))"
        return f"CASE WHEN {kind} = 'STRING' THEN get_json_object({{0}}, {{1}}) END"
    elif name == "get_first_json_object":
        return f"{before}{{0}}{after}"
    else:
        found = f"array_compact(array({before}{{0}}{after}))"
    return _of_values(name, f"CASE WHEN try_parse_json({{0}}) IS NOT NULL THEN {found} END")


def _check_path(sql: Sql, part: tuple[int, int], path: str | None) -> None:
    """Raises DialectError for a literal that is not a path."""
    problem = path_problem(path) if path is not None else None
    if problem is not None:
        first, last = part
        raise DialectError(
            f"invalid JSON path: {problem}", sql[first].start, sql[last - 1].end,
            "write a path such as '$.orders[*].id'", "invalid-json-path",
        )  # fmt: skip


def _of_values(name: str, values: str) -> str:
    """Returns the result of a function of a path from the JSON texts of all values at the path."""
    first = f"get({values}, 0)"
    if name == "extract_json_string":
        kind = f"schema_of_variant(try_parse_json({first}))"
        return f"CASE WHEN {kind} = 'STRING' THEN get_json_object({first}, '$') END"
    return first if name == "get_first_json_object" else values


def _step(sql: Sql, part: tuple[int, int]) -> str | int:
    first, last = part
    token = sql[first]
    if last - first == 1 and token.kind == "string":
        return token.value
    if last - first == 1 and token.kind == "number" and token.value.isdecimal():
        return int(token.value)
    raise DialectError(
        "expected a key in quotes or an index", token.start, sql[last - 1].end,
        "use variant_get(parse_json(a), path, 'string') of Spark",
    )  # fmt: skip
