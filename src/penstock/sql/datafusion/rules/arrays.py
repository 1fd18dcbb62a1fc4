"""Functions of arrays: `array_slice(xs, 2, 4)`, `list_sum(xs)`, `string_to_array(a, ',')`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.sql.text.calls import is_array_literal, literal, rewrite_call, rewrite_calls
from penstock.sql.text.edits import DialectError, Edit
from penstock.sql.text.sql import Call, Sql

_PLUS = "(_sum, _item) -> coalesce(_sum + _item, _sum, _item)"
_TIMES = "(_product, _item) -> coalesce(_product * _item, _product, _item)"
_SUM = f"aggregate({{0}}, CAST(NULL AS DOUBLE), {_PLUS})"
_NORM = "sqrt(aggregate({0}, 0D, (_sum, _item) -> _sum + _item * _item))"
_POSITIONS = (
    "array_compact(transform({0}, (_item, _index) -> CASE WHEN _item <=> {1} THEN _index + 1 END))"
)
_FIRST_POSITION = "nullif(array_position({0}, {1}), 0)"
_POSITION_FROM = (
    "(nullif(array_position(slice({0}, {2}, greatest(size({0}), 1)), {1}), 0) + {2} - 1)"
)

_HAS = "coalesce(array_contains({0}, {1}), nullif({0} IS NULL OR {1} IS NULL, true))"
"""A null element equals no value, and differs from all: the result is false, not null."""
_APPENDED = "array_append(coalesce({0}, array()), {1})"
_PREPENDED = "concat(array({0}), coalesce({1}, array()))"
_SPLIT = (
    "CASE {0} WHEN '' THEN array()"
    " ELSE if({1} = '', array({0}), split({0}, concat('\\\\Q', {1}, '\\\\E'))) END"
)


def _dot(first: str, second: str) -> str:
    products = f"zip_with({first}, {second}, (_left, _right) -> _left * _right)"
    return f"aggregate({products}, 0D, (_sum, _item) -> _sum + _item)"


def _series(first: str, comparison: str, end: str, last: str) -> str:
    """Returns the template of a series, which is empty below its first number, and null at null."""
    return (
        f"CASE {first} {comparison} {end} WHEN true THEN sequence({first}, {last})"
        " WHEN false THEN array() END"
    )


def _each(combined: str) -> str:
    return f"zip_with({{0}}, {{1}}, (_left, _right) -> {combined})"


def _remove_until(position: str) -> str:
    return f"filter({{0}}, (_item, _index) -> NOT (_item <=> {{1}}) OR _index >= {position})"


def _replace_until(position: str) -> str:
    found = f"_item <=> {{1}} AND _index < {position}"
    return f"transform({{0}}, (_item, _index) -> CASE WHEN {found} THEN {{2}} ELSE _item END)"


def _bound(place: str) -> str:
    return f"if({place} < 0, size({{0}}) + {place} + 1, {place})"


_WITHIN = f"_index + 1 BETWEEN {_bound('{1}')} AND {_bound('{2}')}"
_BY_ALIAS: Mapping[tuple[str, int], str] = {
    ("add", 2): _each("_left + _right"),
    ("subtract", 2): _each("_left - _right"),
    ("scale", 2): "transform({0}, _item -> _item * {1})",
    ("any_value", 1): "get(array_compact({0}), 0)",
    ("append", 2): _APPENDED,
    ("avg", 1): f"({_SUM} / size(array_compact({{0}})))",
    ("compact", 1): "array_compact({0})",
    ("distance", 2): f"sqrt({_dot(_each('_left - _right'), _each('_left - _right'))})",
    ("distinct", 1): "array_distinct({0})",
    ("element", 2): "try_element_at({0}, {1})",
    ("empty", 1): "(size({0}) = 0)",
    ("except", 2): "array_except({0}, {1})",
    ("extract", 2): "try_element_at({0}, {1})",
    ("has", 2): _HAS,
    ("contains", 2): _HAS,
    ("has_all", 2): "(size(array_except({1}, {0})) = 0)",
    ("has_any", 2): "(size(array_intersect({0}, {1})) > 0)",
    ("intersect", 2): "array_intersect({0}, {1})",
    ("join", 2): "array_join({0}, {1})",
    ("join", 3): "array_join({0}, {1}, {2})",
    ("to_string", 2): "array_join({0}, {1})",
    ("to_string", 3): "array_join({0}, {1}, {2})",
    ("length", 1): "array_size({0})",
    ("max", 1): "array_max({0})",
    ("normalize", 1): f"transform({{0}}, _item -> try_divide(_item, {_NORM}))",
    ("pop_back", 1): "slice({0}, 1, greatest(size({0}) - 1, 0))",
    ("pop_front", 1): "slice({0}, 2, size({0}))",
    ("position", 2): _FIRST_POSITION,
    ("position", 3): _POSITION_FROM,
    ("indexof", 2): _FIRST_POSITION,
    ("indexof", 3): _POSITION_FROM,
    ("positions", 2): _POSITIONS,
    ("prepend", 2): _PREPENDED,
    ("product", 1): f"aggregate({{0}}, CAST(NULL AS DOUBLE), {_TIMES})",
    ("push_back", 2): _APPENDED,
    ("push_front", 2): _PREPENDED,
    ("remove", 2): _remove_until("array_position({0}, {1})"),
    ("remove_all", 2): "array_remove({0}, {1})",
    ("remove_n", 3): _remove_until(f"coalesce(get({_POSITIONS}, {{2}} - 1), size({{0}}))"),
    ("repeat", 2): "array_repeat({0}, {1})",
    ("replace", 3): _replace_until("array_position({0}, {1})"),
    ("replace_all", 3): "transform({0}, _item -> CASE WHEN _item <=> {1} THEN {2} ELSE _item END)",
    ("replace_n", 4): _replace_until(f"coalesce(get({_POSITIONS}, {{3}} - 1), size({{0}}))"),
    ("resize", 2): "slice(concat({0}, array_repeat(NULL, {1})), 1, {1})",
    ("resize", 3): "slice(concat({0}, array_repeat({2}, {1})), 1, {1})",
    ("reverse", 1): "reverse({0})",
    ("slice", 3): f"filter({{0}}, (_item, _index) -> {_WITHIN})",
    ("slice", 4): f"filter({{0}}, (_item, _index) -> {_WITHIN}"
    f" AND pmod(_index + 1 - {_bound('{1}')}, {{3}}) = 0)",
    ("sort", 1): "sort_array({0})",
    ("sum", 1): _SUM,
    ("union", 2): "array_union({0}, {1})",
    ("zip", 2): "arrays_zip({0}, {1})",
}  # fmt: skip
_KEPT = frozenset({
    "array_append", "array_compact", "array_contains", "array_distinct", "array_except",
    "array_intersect", "array_join", "array_max", "array_position", "array_prepend", "array_remove",
    "array_repeat", "array_sort", "array_union",
})  # fmt: skip
"""Functions that Spark has too, with these numbers of arguments. Their meaning is that of Spark."""
_TEMPLATES = {
    (f"{prefix}_{name}", arity): template
    for (name, arity), template in _BY_ALIAS.items()
    for prefix in ("array", "list")
    if f"{prefix}_{name}" not in _KEPT or (name, arity) == ("position", 3)
} | {
    ("empty", 1): "(size({0}) = 0)",
    ("list_min", 1): "array_min({0})",
    ("inner_product", 2): _dot("{0}", "{1}"),
    ("dot_product", 2): _dot("{0}", "{1}"),
    ("cosine_distance", 2):
        f"(1 - try_divide({_dot('{0}', '{1}')}, {_NORM} * {_NORM.replace('{0}', '{1}')}))",
    ("string_to_array", 2): _SPLIT,
    ("string_to_array", 3): f"transform({_SPLIT}, _item -> nullif(_item, {{2}}))",
    ("generate_series", 1): "sequence(0, {0})",
    ("generate_series", 2): _series("{0}", "<=", "{1}", "{1}"),
    ("generate_series", 3): "sequence({0}, {1}, {2})",
}  # fmt: skip
_TEMPLATES |= {
    (name.replace("_array", "_list"), arity): template
    for (name, arity), template in _TEMPLATES.items()
    if name == "string_to_array"
}
_RANGES = {
    1: _series("0", "<", "{0}", "{0} - 1"),
    2: _series("{0}", "<", "{1}", "{1} - 1"),
    3: "filter(sequence({0}, {1}, {2}), _item -> _item <> {1})",
}
_SORTS = {
    ("ASC", "NULLS FIRST"): "sort_array({0})",
    ("ASC", "NULLS LAST"): "array_sort({0})",
    ("DESC", "NULLS FIRST"): "reverse(array_sort({0}))",
    ("DESC", "NULLS LAST"): "sort_array({0}, false)",
}
_CLAUSES = frozenset({"SELECT", "FROM", "JOIN", "ON", "WHERE", "BY", "HAVING", "VALUES"})


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields functions of Spark."""
    yield from _ranges(sql)
    for call in sql.calls("array_slice", "list_slice"):
        if template := _slice(sql, call):
            yield rewrite_call(sql, call, template)
    yield from rewrite_calls(sql, _TEMPLATES)
    for call in sql.calls("array_length", "list_length"):
        if len(call.arguments) == 2:
            yield rewrite_call(sql, call, _length(sql, call))
    for call in sql.calls("array_sort", "list_sort"):
        if template := _sort(sql, call):
            yield rewrite_call(sql, call, template)
    for call in sql.calls("array_concat", "array_cat", "list_concat", "list_cat"):
        arrays = ", ".join(f"{{{index}}}" for index in range(len(call.arguments)))
        joined = f"flatten(array_compact(array({arrays})))"
        yield rewrite_call(sql, call, f"if(coalesce({arrays}) IS NULL, NULL, {joined})")
    for call in sql.calls("list_zip"):
        yield [Edit(sql[call.name].start, sql[call.name].end, "arrays_zip")]
    for call in sql.calls("array_prepend"):
        if len(call.arguments) == 2 and _is_element_first(sql, *call.arguments):
            yield rewrite_call(sql, call, "concat(array({0}), {1})")
    for call in sql.calls("range"):
        if len(call.arguments) in _RANGES and not _is_relation(sql, call):
            yield rewrite_call(sql, call, _RANGES[len(call.arguments)])


def _is_element_first(sql: Sql, first: tuple[int, int], second: tuple[int, int]) -> bool:
    """Returns whether the arguments of `array_prepend` are an element and then an array."""
    is_value = first[1] - first[0] == 1 and sql[first[0]].kind in ("string", "number")
    return is_value or is_array_literal(sql, *second)


def _length(sql: Sql, call: Call) -> str:
    """Returns the template of the length in a dimension."""
    first, last = call.arguments[1]
    dimension = sql[first].value if last - first == 1 else ""
    if not dimension.isdecimal() or not 1 <= int(dimension) <= 9:
        raise DialectError(
            "expected a number as the dimension of array_length", sql[first].start,
            sql[last - 1].end, "use size(array[0]) for the second dimension",
        )  # fmt: skip
    array = "{0}"
    for _ in range(int(dimension) - 1):
        array = f"get({array}, 0)"
    return f"array_size({array})"


def _ranges(sql: Sql) -> Iterator[list[Edit]]:
    """Yields functions in place of `a[2:3]`, `a[2:]`, `a[:3]` and `a[1:5:2]`."""
    for opening, closing in sql.closing.items():
        if not sql.is_sign(opening, "["):
            continue
        first = sql.operand_before(opening)
        bounds = list(sql.split(opening + 1, closing, ":"))
        if first is None or not 2 <= len(bounds) <= 3:
            continue
        start, end, *step = (sql.slice(*each) if each[0] < each[1] else "" for each in bounds)
        given = ", ".join([start or "1", end or "-1", *step])
        array = sql[first].start
        yield [
            Edit(array, array, "array_slice("),
            Edit(sql[opening].start, sql[closing].end, f", {given})"),
        ]
        return


def _slice(sql: Sql, call: Call) -> str | None:
    """Returns the template of a slice between two numbers above zero, or None."""
    bounds = [sql.slice(*argument) for argument in call.arguments[1:]]
    if len(bounds) != 2 or not all(each.isdecimal() and int(each) > 0 for each in bounds):
        return None
    first, last = map(int, bounds)
    return f"slice({{0}}, {first}, {max(last - first + 1, 0)})"


def _sort(sql: Sql, call: Call) -> str | None:
    """Returns the template of a sort with a direction in quotes, or None."""
    words = [literal(sql, argument) for argument in call.arguments[1:]]
    if not words or None in words:
        return None
    direction = str(words[0]).upper()
    nulls = str(words[1]).upper() if len(words) > 1 else "NULLS FIRST"
    return _SORTS.get((direction, nulls))


def _is_relation(sql: Sql, call: Call) -> bool:
    """Returns whether a call is an item of FROM."""
    opening = sql.enclosing(call.name)
    index = call.name - 1
    while index >= 0 and index != opening:
        if sql.word(index) in _CLAUSES and sql.enclosing(index) == opening:
            return sql.word(index) in ("FROM", "JOIN")
        index -= 1
    return False
