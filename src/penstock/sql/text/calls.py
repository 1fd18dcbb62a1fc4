"""Calls of functions in a SQL text: their names, and rewriting by templates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from penstock.sql.text.edits import DialectError, Edit
from penstock.sql.text.sql import Call, Sql, read_sql

_PLACE = re.compile(r"\{(\d+)\}")
NO_TEXTS: Mapping[int, str] = {}
_PATTERNS = ("LIKE", "ILIKE", "RLIKE", "REGEXP")
"""The words before the quantifiers ANY, SOME and ALL, which are no functions."""


def rewrite_calls(sql: Sql, templates: Mapping[tuple[str, int], str]) -> Iterator[list[Edit]]:
    """Yields the edits of the calls with a template, by name in lower case and arguments."""
    for call in sql.calls(*{name for name, _ in templates}):
        template = templates.get((sql[call.name].value.lower(), len(call.arguments)))
        if template:
            yield rewrite_call(sql, call, template)


def rewrite_call(
    sql: Sql, call: Call, template: str, texts: Mapping[int, str] = NO_TEXTS
) -> list[Edit]:
    """Returns the edits that write a call as a template, where `{0}` is its first argument.

    `texts` stand in place of arguments. Raises DialectError for a call without an argument that
    the template has.
    """
    if any(int(number) >= len(call.arguments) for number in _PLACE.findall(template)):
        raise too_few_arguments(sql, call)
    start, end = sql[call.name].start, sql[call.closing].end
    return rewrite(sql, start, end, call.arguments, template, texts)


def rewrite(
    sql: Sql, start: int, end: int, parts: Sequence[tuple[int, int]], template: str,
    texts: Mapping[int, str] = NO_TEXTS,
) -> list[Edit]:  # fmt: skip
    """Returns the edits that write `text[start:end]` as a template of its parts.

    Parts that the template has in their order stay as they are, so that errors in them have their
    positions. `texts` stand in place of parts.
    """
    pieces = _PLACE.split(template)
    numbers = [int(number) for number in pieces[1::2]]
    if numbers != sorted(set(numbers)):
        values = {number: sql.slice(*parts[number]) for number in numbers} | {**texts}
        return [Edit(start, end, _PLACE.sub(lambda match: values[int(match[1])], template))]
    edits, position = [], start
    for glue, number in zip(pieces[::2], numbers, strict=False):
        first, last = parts[number]
        edits.append(Edit(position, sql[first].start, glue))
        position = sql[last - 1].end
        if number in texts:
            edits.append(Edit(sql[first].start, position, texts[number]))
    return [*edits, Edit(position, end, pieces[-1])]


def too_few_arguments(sql: Sql, call: Call) -> DialectError:
    """Returns the error of a call without a required argument."""
    name = sql[call.name]
    return DialectError(f"{name.value.lower()} has too few arguments", name.start, name.end)


def literal(sql: Sql, part: tuple[int, int]) -> str | None:
    """Returns the value of an argument that is a text in quotes, or None."""
    first, last = part
    return sql[first].value if last - first == 1 and sql[first].kind == "string" else None


def is_array_literal(sql: Sql, first: int, last: int) -> bool:
    """Returns whether an argument is `[a, b]` or `make_array(a, b)`."""
    opening = first + (sql[first].value.lower() in ("make_array", "make_list"))
    return sql.closing.get(opening) == last - 1 and (opening > first or sql.is_sign(first, "["))


def whole_call(sql: Sql, part: tuple[int, int], *names: str) -> Call | None:
    """Returns the call that a part consists of, or None."""
    for call in sql.calls(*names, first=part[0], last=part[1]):
        return call if (call.name, call.closing + 1) == part else None
    return None


def called_functions(text: str, *, arguments: bool = True) -> frozenset[str]:
    """Returns the names before a parenthesis, or only before `()` without `arguments`.

    Returns none for a text without valid tokens.
    """
    sql = read_sql(text)
    if sql is None:
        return frozenset()
    return frozenset(
        name.value.lower()
        for index, name in enumerate(sql.tokens)
        if name.kind != "string"
        and sql.is_sign(index + 1, "(")
        and (arguments or sql.is_sign(index + 2, ")"))
        and sql.word(index - 1) not in _PATTERNS
    )
