"""Statements of a SQL script with the places of their parts, in a text that may be incomplete."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from penstock.language.relations import Kind, Relation, declared_columns
from penstock.sql.text.quoting import CLOSED, statement_end

Span = tuple[int, int]
_PIECE = re.compile(rf"(?P<skip>{CLOSED.pattern})|(?P<word>[A-Za-z_]\w*)|(?P<sign>[()])", re.DOTALL)
_NAME = r"(?P<name>[A-Za-z_]\w*|`[^`]+`|\"[^\"]+\")"
_HEAD = re.compile(
    rf"\s*(?:--[^\n]*\n\s*|/\*.*?\*/\s*)*(?:(?P<create>CREATE)\s+(?:OR\s+REPLACE\s+)?(?:TEMP(?:ORARY)?\s+)?"
    rf"(?P<kind>TABLE|VIEW|FUNCTION|MACRO|AGGREGATE\s+FUNCTION)\s+(?:IF\s+NOT\s+EXISTS\s+)?{_NAME}?"
    rf"|(?P<insert>INSERT)\s+INTO\s+(?:TABLE\s+)?(?P<table>[A-Za-z_]\w*|`[^`]+`|\"[^\"]+\")?"
    rf"|(?P<set>SET)\b)?",
    re.IGNORECASE | re.DOTALL,
)
_OPTION = re.compile(
    r"""(?P<key>'[^']*'|"[^"]*"|[A-Za-z_][\w.]*)\s*(?:=\s*(?P<value>'(?:[^']|'')*'?|[^\s,()]*))?"""
)
_QUERY = frozenset({"SELECT", "WITH", "VALUES", "FROM"})


@dataclass(frozen=True)
class ScriptOption:
    """An option of a table. The spans are those of the name and of the value without quotes."""

    name: str
    key: Span
    value: str | None
    value_span: Span


@dataclass(frozen=True)
class ScriptStatement:
    """A statement: `text[start:end]`. `columns` and `options` are within their brackets."""

    kind: Literal["table", "view", "function", "insert", "set", "query"]
    start: int
    end: int
    name: str = ""
    name_span: Span = (0, 0)
    columns: Span | None = None
    options: Span | None = None
    query: Span | None = None
    given: tuple[ScriptOption, ...] = field(default=())

    def option(self, name: str) -> str | None:
        """Returns the value of an option, or None."""
        return next((each.value for each in self.given if each.name == name), None)


def read_statements(text: str) -> Iterator[ScriptStatement]:
    """Yields the statements of a script, also the incomplete ones."""
    position = 0
    while position <= len(text):
        end = statement_end(text, position)
        yield _statement(text, position, end)
        position = end + 1


def script_relations(text: str, statements: list[ScriptStatement]) -> Iterator[Relation]:
    """Yields the tables and views of a script in their order."""
    written = {each.name.lower() for each in statements if each.kind == "insert"}
    for each in statements:
        if each.kind not in ("table", "view") or not each.name:
            continue
        is_sink = each.kind == "table" and each.options and each.name.lower() in written
        kind: Kind = "sink" if is_sink else "source" if each.options else "transform"
        if each.options and each.query:
            kind = "sink"
        columns = declared_columns(text[slice(*each.columns)]) if each.columns else None
        query = text[slice(*each.query)] if each.query else None
        yield Relation(
            each.name, kind, each.option("connector") or "sql", *each.name_span,
            columns=columns, query=query,
        )  # fmt: skip


def _statement(text: str, start: int, end: int) -> ScriptStatement:
    head = _HEAD.match(text, start, end)
    if head is None or not (head["create"] or head["insert"] or head["set"]):
        return ScriptStatement("query", start, end, query=(start, end))
    if head["set"]:
        return ScriptStatement("set", start, end)
    group = "name" if head["create"] else "table"
    name, span = (head[group] or "").strip('`"'), head.span(group)
    if head["insert"]:
        parts = _parts(text, head.end(), end)
        return ScriptStatement("insert", start, end, name, span, parts.first, query=parts.query)
    kind = head["kind"].upper().split()[-1]
    if kind in ("FUNCTION", "MACRO"):
        return ScriptStatement("function", start, end, name, span)
    parts = _parts(text, head.end(), end)
    if kind == "VIEW":
        return ScriptStatement("view", start, end, name, span, parts.first, query=parts.query)
    given = tuple(read_options(text, *parts.options)) if parts.options else ()
    return ScriptStatement(
        "table", start, end, name, span, parts.first, parts.options, parts.query, given
    )


@dataclass
class _Parts:
    first: Span | None = None
    options: Span | None = None
    query: Span | None = None


def _parts(text: str, start: int, end: int) -> _Parts:
    """Returns the brackets after a name and after WITH, and the query."""
    parts, depth, opened, previous = _Parts(), 0, 0, ""
    label = ""
    for match in _PIECE.finditer(text, start, end):
        word, sign = (match["word"] or "").upper(), match["sign"]
        if sign == "(":
            depth += 1
            if depth == 1:
                opened, label = match.end(), previous
        elif sign == ")":
            depth -= 1
            if depth == 0:
                _close(parts, label, (opened, match.start()))
        elif depth == 0 and word in _QUERY and not _is_options(text, match.end(), word):
            parts.query = (match.start(), end)
            return parts
        elif depth == 0 and word == "AS":
            parts.query = (match.end(), end)
        if match["skip"] is None and sign != ")":
            previous = word or previous
    if depth > 0:
        _close(parts, label, (opened, end))
    return parts


def _is_options(text: str, index: int, word: str) -> bool:
    """Returns whether WITH begins options, and not a table expression."""
    return word == "WITH" and text[index:].lstrip()[:1] in ("(", "")


def _close(parts: _Parts, label: str, span: Span) -> None:
    if label == "WITH":
        parts.options = span
    elif label == "" and parts.first is None:
        parts.first = span


def read_options(text: str, start: int, end: int) -> Iterator[ScriptOption]:
    """Yields the options between brackets, also a name without a value."""
    for match in _OPTION.finditer(text, start, end):
        key, value = match["key"].strip("'\""), match["value"]
        first, last = match.span("value") if value is not None else (match.end(), match.end())
        if value and value[0] == "'":
            first += 1
            last -= len(value) > 1 and value[-1] == "'"
        written = text[first:last] if value is not None else None
        yield ScriptOption(key, match.span("key"), written, (first, last))
