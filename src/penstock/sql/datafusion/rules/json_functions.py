"""Functions of JSON texts: `json_get_str(a, 'key')`, `extract_json(a, '$.key')`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from penstock.sql.datafusion import json_values
from penstock.sql.datafusion.json_casts import cast_value, type_of_cast
from penstock.sql.datafusion.json_keys import Step, read_step
from penstock.sql.datafusion.json_path import (
    FIND_VALUES,
    PATH_FUNCTIONS,
    is_path_of_one_value,
    json_text,
    path_problem,
)
from penstock.sql.text.calls import literal, rewrite_call
from penstock.sql.text.edits import DialectError, Edit
from penstock.sql.text.quoting import quote
from penstock.sql.text.sql import Call, Sql

_BY_KEYS: dict[str, Callable[[Sequence[Step]], str]] = {
    "json_get_str": json_values.string,
    "json_as_text": json_values.text,
    "json_get_int": lambda steps: json_values.number(steps, "BIGINT"),
    "json_get_float": lambda steps: json_values.number(steps, "DOUBLE"),
    "json_get_bool": json_values.boolean,
    "json_get": json_values.json,
    "json_get_json": json_values.json,
    "json_get_array": lambda steps: (
        f"transform({json_values.typed(steps, 'array<variant>')}, item -> to_json(item))"
    ),
    "json_contains": json_values.exists,
    "json_length": lambda steps: (
        f"coalesce(size({json_values.typed(steps, 'array<variant>')}), "
        f"array_size(json_object_keys({json_values.text(steps)})))"
    ),
}
"""Functions whose further arguments are keys and indexes."""


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields functions of Spark."""
    for call in sql.calls(*_BY_KEYS):
        if call.arguments:
            yield rewrite_call(sql, call, _by_keys(sql, call))
    for call in sql.calls(*PATH_FUNCTIONS):
        if len(call.arguments) == 2:
            yield rewrite_call(sql, call, _by_path(sql, call))


def _by_keys(sql: Sql, call: Call) -> str:
    """Returns the template of a function of keys and indexes."""
    name = sql[call.name].value.lower()
    keys = enumerate(call.arguments[1:], 1)
    steps = [read_step(sql, part, number) for number, part in keys]
    type_ = type_of_cast(sql, call.name, call.closing + 1) if name == "json_get" else None
    return _BY_KEYS[name](steps) if type_ is None else cast_value(sql, type_, steps)


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
