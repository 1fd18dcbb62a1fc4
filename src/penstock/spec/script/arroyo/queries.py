"""Queries of scripts for Arroyo, where the same text has another meaning in Spark.

The first element of an array has the number 1, and an element that an array lacks is null.
Patterns are those of Rust, and `regexp_replace` replaces the first match. A missing value of `->`
is written as the text `null`.
Arithmetic and other functions are in files of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from penstock.spec.script.arroyo.arithmetic import divisions, doubles, names_of_quotients, products
from penstock.spec.script.arroyo.functions import calls
from penstock.spec.script.arroyo.orders import null_orders
from penstock.sql.dialect.json_keys import key_end
from penstock.sql.dialect.lineage import whole_call
from penstock.sql.dialect.query import Part, read_query
from penstock.sql.text.edits import Edit, Translation, without_overlaps
from penstock.sql.text.sql import Sql, read_sql

_MAX_ROUNDS = 200
_NO_ARRAYS = ("ARRAY", "MAP", "STRUCT", "MAKE_ARRAY")
_FLAGS = {
    "regexp_count": {2: ", 1, ''", 3: ", ''"},
    "regexp_instr": {2: ", 1, 1, ''", 3: ", 1, ''", 4: ", ''"},
    "regexp_like": {2: ", ''"},
    "regexp_replace": {3: ", ''"},
}
"""The arguments that calls lack, by their number of arguments."""


def translate_query(text: str | Translation, *, is_written: bool = False) -> Translation:
    """Returns a query or expression of Arroyo with functions that both dialects have.

    `is_written` is whether a sink writes the rows.
    """
    translation = Translation.of(text) if isinstance(text, str) else text
    rules = (names_of_quotients, doubles, products, null_orders, _pattern_flags)
    for rule in rules:
        translation = _edit(translation, rule)
    if is_written:
        translation = _edit(translation, _written_values)
    for repeated in (_elements, _calls, divisions):
        for _ in range(_MAX_ROUNDS):
            edited = _edit(translation, repeated)
            if edited is translation:
                break
            translation = edited
    return translation


def _calls(sql: Sql) -> list[Edit]:
    return without_overlaps(calls(sql))


def _edit(translation: Translation, rule: Callable[[Sql], Iterable[Edit]]) -> Translation:
    sql = read_sql(translation.text)
    edits = list(rule(sql)) if sql is not None else []
    return translation.edit(edits) if edits else translation


def _elements(sql: Sql) -> Iterator[Edit]:
    """Yields functions in place of the first `array[number]`."""
    for index in range(1, len(sql)):
        closing = sql.closing.get(index)
        if closing is None or not sql.is_sign(index, "[") or closing == index + 1:
            continue
        first = sql.operand_before(index)
        if first is None or sql.word(index - 1) in _NO_ARRAYS or sql[index + 1].kind == "string":
            continue
        inside = range(index + 1, closing)
        if any(sql.is_sign(each, ":") or sql.is_sign(each, ",") for each in inside):
            continue
        position = sql.slice(index + 1, closing)
        if re.fullmatch(r"-?\d+", position):
            function, end = "try_element_at", position if int(position) else "nullif(0, 0)"
        else:
            function, end = "get", f"CAST({position} AS INT) - 1"
        yield Edit(sql[first].start, sql[first].start, f"{function}(")
        yield Edit(sql[index].start, sql[closing].end, f", {end})")
        return


def _pattern_flags(sql: Sql) -> Iterator[Edit]:
    """Yields empty flags of functions whose form with flags has the meaning of DataFusion only."""
    for call in sql.calls(*_FLAGS):
        added = _FLAGS[sql[call.name].value.lower()].get(len(call.arguments))
        if added is not None:
            place = sql[call.closing].start
            yield Edit(place, place, added)


def _written_values(sql: Sql) -> Iterator[Edit]:
    """Yields the text `null` for the missing values of `->` among the columns of a query."""
    query = read_query(sql)
    for select in query.selects if query is not None else []:
        for item in select.items:
            first, last = item.expression
            if _is_json_value(sql, item.expression):
                yield Edit(sql[first].start, sql[first].start, "coalesce(")
                yield Edit(sql[last - 1].end, sql[last - 1].end, ", 'null')")


def _is_json_value(sql: Sql, part: Part) -> bool:
    """Returns whether an expression is `a -> 'b'`, also with further keys, or `json_get(...)`."""
    if whole_call(sql, part, "json_get") is not None:
        return True
    first, last = part
    index, end = _operator_after(sql, first, last), None
    while index is not None and index < last and sql.is_sign(index, "->"):
        index = end = key_end(sql, index + 1)
    return end == last


def _operator_after(sql: Sql, first: int, last: int) -> int | None:
    """Returns the first `->` whose operand begins at a token, or None."""
    signs = (index for index in range(first, last) if sql.is_sign(index, "->"))
    return next((index for index in signs if sql.operand_before(index) == first), None)
