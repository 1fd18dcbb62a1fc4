"""Queries of DataFusion, where the same text has another meaning in Spark.

The first element of an array has the number 1, and an element that an array lacks is null. Nulls
are last in ascending order and first in descending order (DataFusion, "ORDER BY"). A text in double
quotes is a name. Patterns are those of Rust, and `regexp_replace` replaces the first match.
Arithmetic, other functions and the names of columns are in files of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from penstock.sql.datafusion.meaning.arithmetic import (
    divisions,
    doubles,
    products,
)
from penstock.sql.datafusion.meaning.casts import typed_casts
from penstock.sql.datafusion.meaning.functions import calls
from penstock.sql.datafusion.meaning.output_names import names_of_columns, quoted_names
from penstock.sql.datafusion.meaning.settings import PLAIN, Settings
from penstock.sql.text.calls import literal
from penstock.sql.text.edits import Edit, Translation, without_overlaps
from penstock.sql.text.quoting import quote
from penstock.sql.text.sql import Sql, read_sql

Rule = Callable[[Sql], Iterable[Edit]]
_MAX_ROUNDS = 200
_NO_ARRAYS = ("ARRAY", "MAP", "STRUCT", "MAKE_ARRAY")
_FLAGS = {
    "regexp_count": {2: ", 1, ''", 3: ", ''"},
    "regexp_instr": {2: ", 1, 1, ''", 3: ", 1, ''", 4: ", ''"},
    "regexp_like": {2: ", ''"},
    "regexp_replace": {3: ", ''"},
}
"""The arguments that calls lack, by their number of arguments."""
_ENDS = frozenset({"ROWS", "RANGE", "GROUPS", "LIMIT", "OFFSET", "FETCH", "UNION", "EXCEPT",
                   "INTERSECT", "WINDOW"})  # fmt: skip


def translate_query(
    text: str | Translation, *further: Rule, settings: Settings = PLAIN
) -> Translation:
    """Returns a query or expression of DataFusion with functions that both systems have.

    `further` are rules of a dialect that is built on DataFusion, and `settings` its differences.
    """
    translation = Translation.of(text) if isinstance(text, str) else text
    rules = (quoted_names, names_of_columns, doubles, products, _null_orders)
    replacing = (_whole_replacements,) if settings.replaces_all else ()
    for rule in (*rules, *replacing, _pattern_flags, *further):
        translation = _edit(translation, rule)
    for repeated in (typed_casts, _elements, _calls, divisions):
        for _ in range(_MAX_ROUNDS):
            edited = _edit(translation, repeated)
            if edited is translation:
                break
            translation = edited
    return translation


def _calls(sql: Sql) -> list[Edit]:
    return without_overlaps(calls(sql))


def _edit(translation: Translation, rule: Rule) -> Translation:
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


def _whole_replacements(sql: Sql) -> Iterator[Edit]:
    """Yields `regexp_replace` without flags for all matches, with a replacement as it is."""
    for call in sql.calls("regexp_replace"):
        if len(call.arguments) != len(("text", "pattern", "replacement")):
            continue
        first, last = call.arguments[2]
        text = literal(sql, call.arguments[2])
        if text is None:
            yield Edit(sql[first].start, sql[first].start, "replace(replace(")
            yield Edit(sql[last - 1].end, sql[last - 1].end, r""", '\\', '\\\\'), '$', '\\$')""")
        elif "$" in text:
            yield Edit(sql[first].start, sql[first].end, quote(text.replace("$", "$$")))
        yield Edit(sql[call.closing].start, sql[call.closing].start, ", 'g'")


def _null_orders(sql: Sql) -> Iterator[Edit]:
    """Yields the place of nulls for the keys of ORDER BY that do not have it: last if ascending.

    The order of WITHIN GROUP is that of percentiles, which leave out nulls.
    """
    for index in range(len(sql)):
        if not sql.words(index, "ORDER", "BY") or sql.words(index - 3, "WITHIN", "GROUP"):
            continue
        end = _end_of_keys(sql, index + 2)
        for first, last in sql.split(index + 2, end, ","):
            if first < last and sql.word(last - 2) != "NULLS":
                nulls = "FIRST" if sql.word(last - 1) == "DESC" else "LAST"
                yield Edit(sql[last - 1].end, sql[last - 1].end, f" NULLS {nulls}")


def _end_of_keys(sql: Sql, index: int) -> int:
    """Returns the token after the keys that begin at `index`."""
    while index < len(sql):
        if sql.word(index) in _ENDS or sql.is_sign(index, ")"):
            break
        index = sql.closing.get(index, index) + 1
    return index
