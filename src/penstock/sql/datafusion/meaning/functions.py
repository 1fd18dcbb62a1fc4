"""Functions that Spark has with another meaning: `log(a)`, `left(a, -2)`, `array_agg(a)`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from penstock.sql.datafusion.typed_functions import (
    CARDINALITY,
    CEIL,
    DIMENSIONS,
    FLOOR,
    ROUND,
    ROUND_TO,
)
from penstock.sql.text.calls import is_array_literal, literal, rewrite, rewrite_call
from penstock.sql.text.clauses import Part
from penstock.sql.text.edits import Edit
from penstock.sql.text.quoting import quote
from penstock.sql.text.sql import Call, Sql

_WORDS = r"([\\p{L}\\p{N}]+|[^\\p{L}\\p{N}]+)"
_ZIPPED = (
    "zip_with(coalesce({0}, array()), coalesce({1}, array()), "
    "(_left, _right) -> named_struct('1', _left, '2', _right))"
)
_TEMPLATES = {
    ("approx_distinct", 1): "approx_count_distinct({0}, 0.01D)",
    ("arrays_zip", 2): _ZIPPED,
    ("list_zip", 2): _ZIPPED,
    ("initcap", 1): (
        f"array_join(transform(regexp_extract_all(lower({{0}}), '{_WORDS}', 1), "
        "_word -> concat_ws('', upper(substr(_word, 1, 1)), substr(_word, 2))), '')"
    ),
    ("floor", 1): f"{FLOOR}({{0}})",
    ("ceil", 1): f"{CEIL}({{0}})",
    ("round", 1): f"{ROUND}({{0}})",
    ("round", 2): f"{ROUND_TO}({{0}}, {{1}})",
    ("to_local_time", 1): "({0})",
    ("log", 1): "log10({0})",
    ("chr", 1): "decode(unhex(lpad(hex({0}), 8, '0')), 'UTF-32')",
    ("isnan", 1): "({0} = DOUBLE('NaN'))",
    ("from_unixtime", 1): "timestamp_seconds({0})",
    ("from_unixtime", 2): "from_utc_timestamp(timestamp_seconds({0}), {1})",
    ("array_position", 2): "CAST(list_position({0}, {1}) AS BIGINT)",
    ("array_prepend", 2): "list_prepend({0}, {1})",
    ("array_remove", 2): "list_remove({0}, {1})",
    ("array_sort", 1): "list_sort({0})",
    ("cardinality", 1): f"{CARDINALITY}({{0}})",
    ("array_dims", 1): f"CASE WHEN size({{0}}) > 0 THEN {DIMENSIONS}({{0}}) END",
    ("array_ndims", 1): (
        "if({0} IS NULL, NULL, length(regexp_extract(typeof({0}), '^((array<)*)', 1)) DIV 6)"
    ),
}
_TEMPLATES |= {(f"list_{name}", 1): _TEMPLATES[f"array_{name}", 1] for name in ("dims", "ndims")}
_FIELDS = {"dow": "(extract(DAYOFWEEK FROM {0}) - 1)", "second": "second({0})"}
_WHOLE = re.compile(r"(-?)\s*(\d+)\Z")
_ARITHMETIC = ("+", "-", "*", "/", "%", "||")
_PARTS = ("FROM", "FOR")


def calls(sql: Sql) -> Iterator[list[Edit]]:
    """Yields calls that have the same meaning in Spark. None of them is found again."""
    for call in sql.calls():
        name = sql[call.name].value.lower()
        template = _TEMPLATES.get((name, len(call.arguments)))
        if template:
            yield rewrite_call(sql, call, template)
        elif name == "concat" and not _has_array(sql, call):
            yield [Edit(sql[call.name].start, sql[call.opening].end, "concat_ws('', ")]
        elif name in ("left", "right") and len(call.arguments) == 2:
            yield from _ends(sql, call, name)
        elif name in ("substr", "substring"):
            yield from _substrings(sql, call)
        elif name in ("extract", "date_part", "datepart"):
            yield from _fields(sql, call, name)
        elif name == "array_agg":
            yield from _with_nulls(sql, call)
        elif name in ("struct", "row") and call.arguments:
            yield _struct(sql, call)
        elif name in ("any", "some") and sql.is_sign(call.name - 1, "="):
            yield from _contained(sql, call)


def _struct(sql: Sql, call: Call) -> list[Edit]:
    """Returns a struct whose fields without a name are `c0`, `c1` and so on."""
    edits = [Edit(sql[call.name].start, sql[call.name].end, "named_struct")]
    for number, (first, last) in enumerate(call.arguments):
        name = f"c{number}"
        if last - first > 2 and sql.word(last - 2) == "AS":
            name = sql[last - 1].value
            edits.append(Edit(sql[last - 3].end, sql[last - 1].end, ""))
        edits.append(Edit(sql[first].start, sql[first].start, f"{quote(name)}, "))
    return edits


def _contained(sql: Sql, call: Call) -> Iterator[list[Edit]]:
    """Yields `array_has(b, a)` for `a = ANY (b)`: false if a null is in the array."""
    first = sql.operand_before(call.name - 1)
    while first is not None and any(sql.is_sign(first - 1, sign) for sign in _ARITHMETIC):
        first = sql.operand_before(first - 1)
    if first is None or len(call.arguments) != 1 or sql.word(call.opening + 1) == "SELECT":
        return
    value, array = sql.slice(first, call.name - 1), sql.slice(*call.arguments[0])
    end = sql[call.closing].end
    yield [Edit(sql[first].start, end, f"array_has({array}, {value})")]


def _has_array(sql: Sql, call: Call) -> bool:
    return not call.arguments or any(is_array_literal(sql, *part) for part in call.arguments)


def _whole(sql: Sql, part: Part) -> int | None:
    """Returns the value of a whole number, or None for another expression."""
    match = _WHOLE.match(sql.slice(*part))
    return int(match[1] + match[2]) if match else None


def _ends(sql: Sql, call: Call, name: str) -> Iterator[list[Edit]]:
    """Yields `left` and `right` without the characters that a negative length counts."""
    length = _whole(sql, call.arguments[1])
    if length is not None and length >= 0:
        return
    if length is None:
        kept = "substr({text}, 1, if({1} < 0, length({0}) + {1}, {1}))"
        reverse = f"reverse({kept})".replace("{text}", "reverse({0})")
        template = kept.replace("{text}", "{0}") if name == "left" else reverse
    elif name == "left":
        template = f"substr({{0}}, 1, length({{0}}) - {-length})"
    else:
        template = f"substr({{0}}, {1 - length})"
    yield rewrite_call(sql, call, template)


def _substrings(sql: Sql, call: Call) -> Iterator[list[Edit]]:
    """Yields `substr` with characters before the first one, which are empty."""
    parts: Sequence[Part] = call.arguments
    if len(parts) == 1:
        parts = list(_by_words(sql, call))
    if len(parts) == 2 and sql.words(parts[1][0] - 1, "FOR"):
        yield _call(sql, call, parts, "substr({0}, 1, {1})")
        return
    if len(parts) not in (2, 3) or sql.word(parts[1][0]) == "IF":
        return
    first = _whole(sql, parts[1])
    if first is None:
        length = ", if({1} < 1, {1} + {2} - 1, {2})" if len(parts) == 3 else ""
        yield _call(sql, call, parts, f"substr({{0}}, if({{1}} < 1, 1, {{1}}){length})")
    elif first < 1:
        length = f", {{2}} - {1 - first}" if len(parts) == 3 else ""
        yield _call(sql, call, parts, f"substr({{0}}, 1{length})")


def _call(sql: Sql, call: Call, parts: Sequence[Part], template: str) -> list[Edit]:
    return rewrite(sql, sql[call.name].start, sql[call.closing].end, parts, template)


def _by_words(sql: Sql, call: Call) -> Iterator[Part]:
    """Yields the parts of `a FROM n FOR m`."""
    start = call.opening + 1
    for index in range(start, call.closing):
        if sql.word(index) in _PARTS and sql.enclosing(index) == call.opening:
            yield start, index
            start = index + 1
    yield start, call.closing


def _fields(sql: Sql, call: Call, name: str) -> Iterator[list[Edit]]:
    """Yields the day of the week from 0, and seconds without their fraction."""
    if name == "extract" and sql.word(call.opening + 2) == "FROM":
        field, part = sql[call.opening + 1].value, (call.opening + 3, call.closing)
    elif name != "extract" and len(call.arguments) == 2:
        field, part = literal(sql, call.arguments[0]) or "", call.arguments[1]
    else:
        return
    template = _FIELDS.get(field.lower()) or _FIELDS.get(field.lower().removesuffix("s"))
    if template and sql.word(part[0]) != "INTERVAL":
        yield _call(sql, call, [part], template)


def _with_nulls(sql: Sql, call: Call) -> Iterator[list[Edit]]:
    """Yields the words that keep nulls in an array. With ORDER BY they are kept anyway."""
    words = range(call.opening + 1, call.closing)
    if any(sql.words(i, "ORDER", "BY") and sql.enclosing(i) == call.opening for i in words):
        return
    last = call.closing
    if sql.word(last + 1) == "FILTER":
        last = sql.closing.get(last + 2, last)
    if sql.word(last + 2) != "NULLS" and sql.word(call.closing + 2) != "NULLS":
        yield [Edit(sql[last].end, sql[last].end, " RESPECT NULLS")]
