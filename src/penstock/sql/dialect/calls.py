"""Rewriting of calls by templates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from penstock.sql.dialect.text import Edit
from penstock.sql.dialect.tokens import Call, Sql

_PLACE = re.compile(r"\{(\d+)\}")


def rewrite_calls(sql: Sql, templates: Mapping[tuple[str, int], str]) -> Iterator[list[Edit]]:
    """Yields the edits of the calls with a template, by name in lower case and arguments."""
    for call in sql.calls(*{name for name, _ in templates}):
        template = templates.get((sql[call.name].value.lower(), len(call.arguments)))
        if template:
            yield rewrite_call(sql, call, template)


def rewrite_call(sql: Sql, call: Call, template: str) -> list[Edit]:
    """Returns the edits that write a call as a template, where `{0}` is its first argument."""
    start, end = sql[call.name].start, sql[call.closing].end
    return rewrite(sql, start, end, call.arguments, template)


def rewrite(
    sql: Sql, start: int, end: int, parts: Sequence[tuple[int, int]], template: str
) -> list[Edit]:
    """Returns the edits that write `text[start:end]` as a template of its parts.

    Parts that the template has in their order stay as they are, so that errors in them have their
    positions.
    """
    pieces = _PLACE.split(template)
    numbers = [int(number) for number in pieces[1::2]]
    if numbers != sorted(set(numbers)):
        texts = [sql.slice(*part) for part in parts]
        return [Edit(start, end, _PLACE.sub(lambda match: texts[int(match[1])], template))]
    edits, position = [], start
    for glue, number in zip(pieces[::2], numbers, strict=False):
        first, last = parts[number]
        edits.append(Edit(position, sql[first].start, glue))
        position = sql[last - 1].end
    return [*edits, Edit(position, end, pieces[-1])]


def literal(sql: Sql, part: tuple[int, int]) -> str | None:
    """Returns the value of an argument that is a text in quotes, or None."""
    first, last = part
    return sql[first].value if last - first == 1 and sql[first].kind == "string" else None


def is_array_literal(sql: Sql, first: int, last: int) -> bool:
    """Returns whether an argument is `[a, b]` or `make_array(a, b)`."""
    opening = first + (sql[first].value.lower() in ("make_array", "make_list"))
    return sql.closing.get(opening) == last - 1 and (opening > first or sql.is_sign(first, "["))


def quote(text: str) -> str:
    """Returns a text as a literal of Spark SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
