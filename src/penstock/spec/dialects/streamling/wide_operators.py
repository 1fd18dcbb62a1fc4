"""Operators between integers of 256 bits, which are texts of digits: `a + b` is `u256_add(a, b)`.

Such an integer is the result of a function of 256 bits, or a column that a query made of one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from penstock.sql.text.edits import Edit, Translation
from penstock.sql.text.query import read_query
from penstock.sql.text.sql import Sql, read_sql

Kinds = Mapping[str, str]
"""The kinds of columns, `u` or `i`, by their names in lower case."""
_RESULT = re.compile(r"(?:to_([ui])256|([ui])256_(?:add|sub|mul|div|mod|neg|abs))\Z")
_NAMES = {"+": "add", "-": "sub", "*": "mul", "/": "div", "%": "mod"}
_FACTORS, _TERMS = ("*", "/", "%"), ("+", "-")
_COMPARISONS = ("=", "<>", "!=", "<=", ">=", "<", ">")
_LEVELS = ((_FACTORS, ()), (_TERMS, _FACTORS), (_COMPARISONS, (*_FACTORS, *_TERMS)))
"""The operators of each precedence, and those that bind more closely."""
_MAX_ROUNDS = 200


def translate_operators(translation: Translation, columns: Kinds) -> Translation:
    """Returns a query in which operators between integers of 256 bits are functions."""
    for _ in range(_MAX_ROUNDS):
        sql = read_sql(translation.text)
        if sql is None:
            break
        found = (list(_first(sql, signs, inner, columns)) for signs, inner in _LEVELS)
        edits = next(filter(None, found), None) or list(_between(sql, columns))
        if not edits:
            break
        translation = translation.edit(edits)
    return translation


def kinds_of_columns(text: str, columns: Kinds) -> dict[str, str]:
    """Returns the columns of a query that are integers of 256 bits, by those of its input."""
    translation = translate_operators(Translation.of(text), columns)
    sql = read_sql(translation.text)
    query = read_query(sql) if sql is not None else None
    if sql is None or query is None or not query.selects:
        return {}
    found: dict[str, str] = {}
    for item in query.selects[0].items:
        if item.is_star:
            found |= {name: kind for name, kind in columns.items() if name not in item.excluded}
            continue
        first, last = item.part
        end = sql.operand_after(first)
        kind = _kind(sql, first, end, columns) if end is not None else None
        is_whole = end is not None and (end == last or sql.word(end) == "AS" or end == last - 1)
        if kind is not None and is_whole and item.name:
            found[item.name.lower()] = kind
    return found


def _first(
    sql: Sql, signs: tuple[str, ...], inner: tuple[str, ...], columns: Kinds
) -> Iterator[Edit]:
    """Yields the edits of the first operator between integers of 256 bits."""
    for index in range(1, len(sql)):
        sign = next((each for each in signs if sql.is_sign(index, each)), None)
        if sign is None:
            continue
        first, last = _before(sql, index, inner), _after(sql, index + 1, inner)
        if first is None or last is None:
            continue
        kinds = {_kind(sql, first, index, columns), _kind(sql, index + 1, last, columns)} - {None}
        if not kinds:
            continue
        kind = "i" if "i" in kinds else "u"
        name = _NAMES.get(sign, "compare")
        after = "" if sign in _NAMES else f" {sign} 0"
        yield Edit(sql[first].start, sql[first].start, f"{kind}256_{name}(")
        yield Edit(sql[index - 1].end, sql[index + 1].start, ", ")
        yield Edit(sql[last - 1].end, sql[last - 1].end, f"){after}")
        return


def _between(sql: Sql, columns: Kinds) -> Iterator[Edit]:
    """Yields two comparisons in place of the first BETWEEN of integers of 256 bits."""
    inner = (*_FACTORS, *_TERMS)
    for index in range(1, len(sql)):
        if sql.word(index) != "BETWEEN":
            continue
        end = index - (sql.word(index - 1) == "NOT")
        first, middle = _before(sql, end, inner), _after(sql, index + 1, inner)
        last = _after(sql, middle + 1, inner) if middle is not None else None
        if first is None or middle is None or last is None or sql.word(middle) != "AND":
            continue
        kind = _kind(sql, first, end, columns)
        if kind is not None:
            value, low = sql.slice(first, end), sql.slice(index + 1, middle)
            high, negated = sql.slice(middle + 1, last), "" if end == index else "NOT "
            text = f"{kind}256_compare({value}, {low}) >= 0 AND "
            text += f"{kind}256_compare({value}, {high}) <= 0"
            yield Edit(sql[first].start, sql[last - 1].end, f"{negated}({text})")
            return


def _before(sql: Sql, index: int, inner: tuple[str, ...]) -> int | None:
    """Returns the first token of the operand before an operator."""
    first = sql.operand_before(index)
    while first is not None and any(sql.is_sign(first - 1, sign) for sign in inner):
        first = sql.operand_before(first - 1)
    return first


def _after(sql: Sql, index: int, inner: tuple[str, ...]) -> int | None:
    """Returns the token after the operand after an operator."""
    last = sql.operand_after(index)
    while last is not None and any(sql.is_sign(last, sign) for sign in inner):
        last = sql.operand_after(last + 1)
    return last


def _kind(sql: Sql, first: int, last: int, columns: Kinds) -> str | None:
    """Returns the kind of an operand; None for another one."""
    while sql.is_sign(first, "(") and sql.closing.get(first) == last - 1:
        first, last = first + 1, last - 1
    call = next(iter(sql.calls(first=first, last=last)), None)
    if call is not None and (call.name, call.closing + 1) == (first, last):
        match = _RESULT.match(sql[first].value.lower())
        return None if match is None else match[1] or match[2]
    names = [sql[index] for index in range(first, last, 2)]
    is_name = all(token.is_name for token in names) and all(
        sql.is_sign(index, ".") for index in range(first + 1, last, 2)
    )
    return columns.get(names[-1].value.lower()) if is_name and names else None
