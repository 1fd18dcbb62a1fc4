"""The scope of a cursor in a SQL text: clause, relations with their columns, qualifier.

A text is mended before it is read: a name takes the place of the cursor, and open quotes and
brackets are closed. A text that is typed is seldom complete.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from penstock.plan.explain import Column
from penstock.sql.text.clauses import Part, Query, Select, Source
from penstock.sql.text.query import read_query, subqueries
from penstock.sql.text.quoting import CLOSED
from penstock.sql.text.sql import Sql, read_sql

Clause = Literal["relation", "expression", "keyword"]
ColumnsOf = Callable[[str], Sequence[Column] | None]
_PLACEHOLDER = "_cursor_"
_WORD = re.compile(r"\w*\Z")
_REST = re.compile(r"\w*")
_PIECE = re.compile(
    rf"{CLOSED.pattern}|(?P<open>['\"`]|/\*)|(?P<word>\w+)|(?P<sign>[()\[\]])", re.DOTALL
)
_ENDS_CALL = frozenset({"FROM", "WHERE", "GROUP", "HAVING", "JOIN"})
_TAKES_FROM = frozenset({"EXTRACT", "TRIM", "SUBSTRING", "OVERLAY", "POSITION"})
_BEFORE_RELATION = frozenset({"FROM", "JOIN", "INTO"})
_TYPES = {"count": "BIGINT", "count_if": "BIGINT", "row_number": "INT", "rank": "INT"}
_MAX_DEPTH = 20


@dataclass(frozen=True)
class Named:
    """A relation in a scope, by the name that its columns are qualified with."""

    name: str
    columns: Sequence[Column] | None


@dataclass(frozen=True)
class Scope:
    """The scope at a cursor. `word` is the word before it, which begins at `start`.

    `qualifier` is the name before a dot. `tables` are the common table expressions.
    """

    clause: Clause
    word: str
    start: int
    end: int
    relations: Sequence[Named] = ()
    tables: Sequence[str] = ()
    qualifier: str | None = None
    aliases: Sequence[Column] = field(default=())


def scope_at(text: str, index: int, columns_of: ColumnsOf) -> Scope | None:
    """Returns the scope of an index in a query or expression; None in a string or a comment."""
    mended = _mend(text, index)
    if mended is None:
        return None
    word, end, sql = mended
    start = index - len(word)
    if sql is None:
        return Scope("keyword", word, start, end)
    at = next((i for i, token in enumerate(sql.tokens) if token.end > start), len(sql) - 1)
    query = _read(sql)
    selects, ctes = _enclosing(sql, query, at) if query else ([], {})
    reader = _Columns(sql, columns_of, ctes)
    relations = [each for select in reversed(selects) for each in reader.relations(select)]
    aliases = reader.outputs_before(selects[-1], at) if selects else ()
    qualifier = sql[at - 2].value if at >= 2 and sql.is_sign(at - 1, ".") else None
    clause = _clause(sql, selects[-1] if selects else None, at)
    return Scope(clause, word, start, end, relations, [*ctes], qualifier, aliases)


def output_columns(text: str, columns_of: ColumnsOf) -> tuple[Column, ...] | None:
    """Returns the columns of the rows of a query; None if they are not known."""
    sql = read_sql(text)
    query = _read(sql) if sql is not None else None
    return _Columns(sql, columns_of, {}).outputs(query) if sql and query else None


def _read(sql: Sql) -> Query | None:
    try:
        return read_query(sql)
    except (IndexError, RecursionError):
        return None


def _mend(text: str, index: int) -> tuple[str, int, Sql | None] | None:
    """Returns the word before the cursor, the end of the word, and the tokens of a mended text."""
    before = text[:index]
    if _is_open(before):
        return None
    match = _WORD.search(before)
    word = match[0] if match else ""
    rest = _REST.match(text, index)
    end = rest.end() if rest else index
    name = text[index - len(word) : end] or _PLACEHOLDER
    mended = _close(f"{text[: index - len(word)]}{name} {text[end:]}")
    return word, end, read_sql(mended)


def _is_open(text: str) -> bool:
    """Returns whether a text ends in a string, a quoted name or a comment."""
    last_line = text.rpartition("\n")[2]
    for match in _PIECE.finditer(text):
        if match["open"]:
            return True
        if match[0].startswith("--") and match.end() == len(text) and "--" in last_line:
            return True
    return False


def _close(text: str) -> str:
    """Returns a text whose quotes and brackets are closed."""
    parts: list[str] = []
    open_: list[tuple[str, str]] = []
    last, previous = 0, ""
    for match in _PIECE.finditer(text):
        if match["open"]:
            text = text[: match.start()]
            break
        word, sign = (match["word"] or "").upper(), match["sign"]
        if sign in ("(", "["):
            open_.append((")" if sign == "(" else "]", previous))
        elif sign and open_ and open_[-1][0] == sign:
            open_.pop()
        elif word in _ENDS_CALL and open_ and _is_call(open_[-1][1]):
            parts += [text[last : match.start()], open_.pop()[0], " "]
            last = match.start()
        elif word in ("SELECT", "WITH") and open_ and previous == "(":
            open_[-1] = (open_[-1][0], "")
        previous = sign or word
    return "".join([*parts, text[last:], *(closing for closing, _ in reversed(open_))])


def _is_call(name: str) -> bool:
    """Returns whether a word before a bracket is a function whose call has no FROM."""
    return name.isidentifier() and name not in _TAKES_FROM


def _enclosing(
    sql: Sql, query: Query, at: int, depth: int = 0
) -> tuple[list[Select], dict[str, Query]]:
    """Returns the selects around a token, the innermost last, and the tables that they may read."""
    ctes = dict(query.ctes)
    for inner in _queries_in(sql, query):
        if inner.part[0] <= at < inner.part[1] and depth < _MAX_DEPTH:
            selects, more = _enclosing(sql, inner, at, depth + 1)
            outer = [each for each in query.selects if each.part[0] <= at < each.part[1]]
            return [*outer, *selects], ctes | more
    found = [each for each in query.selects if each.part[0] <= at < each.part[1]]
    return (found or query.selects[-1:]), ctes


def _queries_in(sql: Sql, query: Query) -> list[Query]:
    relations = (source.query for select in query.selects for source in select.sources)
    expressions = (inner for select in query.selects for inner in subqueries(sql, select))
    return [*query.ctes.values(), *(each for each in relations if each), *expressions]


def _clause(sql: Sql, select: Select | None, at: int) -> Clause:
    if sql.word(at - 1) in _BEFORE_RELATION:
        return "relation"
    if select is None:
        return "keyword" if at == 0 else "expression"
    for source in select.sources:
        parts = [part for part in (source.condition, source.using) if part is not None]
        if any(first <= at <= last for first, last in parts):
            continue
        if source.part[0] <= at < source.part[1] and at == source.part[0]:
            return "relation"
        if source.alias is not None and sql[at].value == source.alias and at > source.part[0]:
            return "keyword"
    if sql[at - 1].kind in ("string", "number") or sql.is_sign(at - 1, ")"):
        return "keyword"
    return "expression"


class _Columns:
    """The columns of relations and queries of a text."""

    def __init__(self, sql: Sql, columns_of: ColumnsOf, ctes: Mapping[str, Query]) -> None:
        self._sql, self._columns_of, self._ctes = sql, columns_of, dict(ctes)
        self._depth = 0

    def relations(self, select: Select) -> list[Named]:
        return [
            Named(source.alias or source.name or "", self._of_source(source))
            for source in select.sources
        ]

    def outputs_before(self, select: Select, at: int) -> list[Column]:
        """Returns the aliases of selected items, where a clause after FROM may use them."""
        if at < select.part[0] or not any(
            word in select.clauses and select.clauses[word][0] <= at
            for word in ("GROUP", "HAVING", "ORDER", "QUALIFY")
        ):
            return []
        return [Column(item.name, "") for item in select.items if item.has_alias and item.name]

    def outputs(self, query: Query) -> tuple[Column, ...] | None:
        """Returns the columns of a query; None if a wildcard reads an unknown relation."""
        self._ctes |= query.ctes
        self._depth += 1
        try:
            if not query.selects or self._depth > _MAX_DEPTH:
                return None
            found = self._of_select(query.selects[0])
        finally:
            self._depth -= 1
        if found is None or query.columns is None:
            return found
        names = [
            self._sql[first].value
            for first, _ in self._sql.split(query.columns[0], query.columns[1], ",")
        ]
        return tuple(Column(n, c.type) for n, c in zip(names, found, strict=False))

    def _of_select(self, select: Select) -> tuple[Column, ...] | None:
        relations = self.relations(select)
        found: list[Column] = []
        for item in select.items:
            if not item.is_star:
                found.append(Column(item.name or "", self._type(item.expression, relations)))
                continue
            is_qualified = self._sql.is_sign(item.part[0] + 1, ".")
            name = self._sql[item.part[0]].value.lower() if is_qualified else None
            for relation in relations:
                if name is None or relation.name.lower() == name:
                    if relation.columns is None:
                        return None
                    found += [c for c in relation.columns if c.name.lower() not in item.excluded]
        return tuple(column for column in found if column.name)

    def _of_source(self, source: Source) -> Sequence[Column] | None:
        if source.query is not None:
            return self.outputs(source.query)
        name = (source.name or "").lower()
        if name in self._ctes and self._depth < _MAX_DEPTH:
            query = self._ctes.pop(name)
            try:
                return self.outputs(query)
            finally:
                self._ctes[name] = query
        return self._columns_of(source.name) if source.name else None

    def _type(self, part: Part, relations: Sequence[Named]) -> str:
        """Returns the type of a column, a cast, or a function whose type is always the same."""
        first, last = part
        tokens = self._sql.tokens[first:last]
        if not tokens:
            return ""
        is_call = last - first > 1 and self._sql.closing.get(first + 1) == last - 1
        if is_call and self._sql.word(first) in ("CAST", "TRY_CAST"):
            kind = next((i for i in range(last - 2, first, -1) if self._sql.word(i) == "AS"), last)
            return self._sql.slice(kind + 1, last - 1).upper()
        if is_call:
            return _TYPES.get(tokens[0].value.lower(), "")
        if not all(t.is_name or t.is_sign(".") for t in tokens) or len(tokens) > 3:
            return ""
        qualifier = tokens[0].value.lower() if len(tokens) == 3 else None
        for relation in relations:
            if qualifier in (None, relation.name.lower()):
                for column in relation.columns or ():
                    if column.name.lower() == tokens[-1].value.lower():
                        return column.type
        return ""
