"""Functions of maps and structs: `make_map('a', 1)`, `map_extract(m, 'a')`, `get_field(s, 'a')`."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sql.text.calls import is_array_literal, literal, rewrite_call, rewrite_calls
from penstock.sql.text.edits import DialectError, Edit
from penstock.sql.text.quoting import quoted
from penstock.sql.text.sql import Sql

_TEMPLATES = {
    ("map_extract", 2): "array(try_element_at({0}, {1}))",
}


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields functions of Spark."""
    yield from rewrite_calls(sql, _TEMPLATES)
    for call in sql.calls("make_map", "map"):
        name = sql[call.name]
        of_arrays = all(is_array_literal(sql, *argument) for argument in call.arguments)
        if of_arrays and len(call.arguments) == 2:
            yield [Edit(name.start, name.end, "map_from_arrays")]
        elif name.value.lower() == "make_map":
            yield [Edit(name.start, name.end, "map")]
    for call in sql.calls("row"):
        yield [Edit(sql[call.name].start, sql[call.name].end, "struct")]
    for call in sql.calls("get_field"):
        names = [literal(sql, argument) for argument in call.arguments[1:]]
        if None in names:
            first, last = call.arguments[1 + names.index(None)]
            raise DialectError(
                "expected names of fields in quotes after the first argument of get_field",
                sql[first].start, sql[last - 1].end, "use map[key] for a key that is computed",
            )  # fmt: skip
        path = "".join(f".{quoted(str(name))}" for name in names)
        yield rewrite_call(sql, call, f"({{0}}){path}")
