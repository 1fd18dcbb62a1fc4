"""Regular expressions: `a ~ 'x'`, `a !~* 'x'`, `regexp_match(a, 'x')`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.sql.dialect.calls import literal, quote, rewrite_call
from penstock.sql.dialect.text import DialectError, Edit
from penstock.sql.dialect.tokens import Call, Sql

_FUNCTIONS = ("regexp_count", "regexp_instr", "regexp_like", "regexp_match", "regexp_replace")
_LOST_BACKSLASH = re.compile(r"(?<!\\)(?:\\\\)*(\\)(?=[dDwWsSbB.+*?()\[\]{}|^$/-])")
"""A backslash before a character that Spark reads without it, as in `'\\d'`."""
_REFERENCE = re.compile(r"\\{1,2}(\d)|\$\{(\d+)\}")


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields RLIKE and functions of Spark."""
    yield from _backslashes(sql)
    yield from _operators(sql)
    for call in sql.calls(*_FUNCTIONS):
        name, count = sql[call.name].value.lower(), len(call.arguments)
        template = None
        if name == "regexp_match" and count in (2, 3):
            template = _match(sql, call)
        elif name == "regexp_like" and count == 3:
            template = f"regexp_like({{0}}, {_pattern(sql, call, 2)})"
        elif name == "regexp_count" and count in (3, 4):
            template = f"regexp_count(substr({{0}}, {{2}}), {_pattern(sql, call, 3)})"
        elif name == "regexp_instr" and count > 3:
            raise _error(sql, call.arguments[3], "regexp_instr finds the first match",
                         "use regexp_instr(substr(text, start), pattern)")  # fmt: skip
        elif name == "regexp_replace" and count == 4:
            template = _replace(sql, call)
        if template:
            yield rewrite_call(sql, call, template)


def _backslashes(sql: Sql) -> Iterator[list[Edit]]:
    """Yields a second backslash for those that Spark removes from patterns in quotes."""
    patterns = [call.arguments[1][0] for call in sql.calls(*_FUNCTIONS) if len(call.arguments) > 1]
    patterns += [index + 1 for index, token in enumerate(sql.tokens) if token.value in ("~", "~*")]
    for index in patterns:
        if index < len(sql) and sql[index].kind == "string":
            start, end = sql[index].start, sql[index].end
            if sql.text[start] in "'\"":
                found = _LOST_BACKSLASH.finditer(sql.text[start:end])
                places = [start + match.start(1) for match in found]
                if places:
                    yield [Edit(place, place, "\\") for place in places]


def _operators(sql: Sql) -> Iterator[list[Edit]]:
    for index, token in enumerate(sql.tokens):
        if sql.words(index, "SIMILAR", "TO"):
            yield [Edit(token.start, sql[index + 1].end, "RLIKE")]
        if token.kind != "sign" or token.value not in ("~", "~*"):
            continue
        first = index - 1 if sql.is_sign(index - 1, "!") else index
        if sql.operand_before(first) is None or index + 1 >= len(sql):
            continue
        words = "NOT RLIKE" if first < index else "RLIKE"
        edits_ = [Edit(sql[first].start, token.end, words)]
        if token.value == "~*":
            if sql[index + 1].kind != "string":
                raise _error(sql, (index + 1, index + 2), "expected a pattern in quotes after ~*",
                             "use a RLIKE concat('(?i)', pattern)")  # fmt: skip
            place = sql[index + 1].start + 1
            edits_.append(Edit(place, place, "(?i)"))
        yield edits_


def _match(sql: Sql, call: Call) -> str:
    """Returns the template of the groups of the first match, or of the whole match."""
    text = literal(sql, call.arguments[1])
    if text is None:
        raise _error(
            sql, call.arguments[1],
            "expected a pattern in quotes as second argument of regexp_match",
            "use regexp_extract(text, pattern, group)",
        )  # fmt: skip
    try:
        groups = re.compile(text).groups
    except re.error:
        groups = 0
    pattern = _pattern(sql, call, 2)
    numbers = range(1, groups + 1) if groups else [0]
    values = ", ".join(f"regexp_extract({{0}}, {pattern}, {number})" for number in numbers)
    return f"CASE WHEN {{0}} RLIKE {pattern} THEN array({values}) END"


def _replace(sql: Sql, call: Call) -> str | None:
    """Returns the template of regexp_replace with flags; None for a position, as in Spark."""
    flags = literal(sql, call.arguments[3])
    if flags is None:
        return None
    if "g" not in flags:
        raise _error(sql, call.arguments[3], "regexp_replace replaces all matches",
                     "add the flag g, as in 'gi'")  # fmt: skip
    replacement = "{2}"
    first, last = call.arguments[2]
    if last - first == 1 and sql[first].kind == "string":
        written = sql.text[sql[first].start : sql[first].end]
        named = _REFERENCE.sub(lambda match: f"${match[1] or match[2]}", written)
        replacement = named if named != written else replacement
    return f"regexp_replace({{0}}, {_pattern(sql, call, 3)}, {replacement})"


def _pattern(sql: Sql, call: Call, position: int) -> str:
    """Returns the template of the pattern with the flags of an argument, if there is one."""
    if len(call.arguments) <= position:
        return "{1}"
    flags = literal(sql, call.arguments[position])
    if flags is None or set(flags) - set("gimsx"):
        raise _error(sql, call.arguments[position],
                     "expected flags in quotes: g, i, m, s or x",
                     "write the flags in the pattern, as in '(?i)a'")  # fmt: skip
    flags = flags.replace("g", "")
    return f"concat({quote(f'(?{flags})')}, {{1}})" if flags else "{1}"


def _error(sql: Sql, part: tuple[int, int], message: str, hint: str) -> DialectError:
    return DialectError(message, sql[part[0]].start, sql[part[1] - 1].end, hint)
