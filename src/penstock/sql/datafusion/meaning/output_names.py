"""The names of the columns of queries, as DataFusion names them.

A name without quotes is in lower case. A column without a name has the text of its expression:
`sum(t.v)`, `t.v + Int64(1)`.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.core.names import quote_name
from penstock.sql.datafusion.meaning.call_names import folded
from penstock.sql.datafusion.meaning.expression_names import ExpressionName
from penstock.sql.datafusion.meaning.literal_names import UnknownName
from penstock.sql.text.calls import whole_call
from penstock.sql.text.clauses import Item, Part, Select
from penstock.sql.text.edits import Edit
from penstock.sql.text.query import column_name, read_query
from penstock.sql.text.quoting import quoted
from penstock.sql.text.sql import Sql

_CONSTANTS = ("CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "FALSE", "NULL", "TRUE")
_WINDOWS = ("calendar_window", "hop", "session", "tumble")
"""Windows without a name have the name `window`."""


def quoted_names(sql: Sql) -> Iterator[Edit]:
    """Yields backticks in place of double quotes: a text in double quotes is a name."""
    for token in sql.tokens:
        if token.kind == "string" and sql.text[token.start] == '"':
            yield Edit(token.start, token.end, quote_name(token.value))


def names_of_columns(sql: Sql) -> Iterator[Edit]:
    """Yields the names of columns of a query and of those within it."""
    query = read_query(sql) if sql.is_closed else None
    if query is None:
        return
    for select in query.walk():
        yield from _edits(sql, select, is_outer=select in query.selects)


def _edits(sql: Sql, select: Select, *, is_outer: bool) -> Iterator[Edit]:
    """Yields the names of the columns of a select.

    DataFusion rejects a query in which two columns have the name of one expression. Here the second
    one keeps its name of Spark.
    """
    used = {item.name.lower() for item in select.items if item.name is not None}
    for item in select.items:
        last = sql[item.part[1] - 1]
        if item.has_alias:
            if folded(last) != last.value:
                yield Edit(last.start, last.end, folded(last))
        elif not item.is_star:
            name = _name(sql, select, item, is_outer=is_outer)
            if name is not None and (item.name is not None or name.lower() not in used):
                yield Edit(last.end, last.end, f" AS {quoted(name)}")
                used.add(name.lower())


def _name(sql: Sql, select: Select, item: Item, *, is_outer: bool) -> str | None:
    """Returns the name of a column that is not written; None if Spark has the same."""
    if whole_call(sql, item.expression, *_WINDOWS) is not None:
        return None
    owners = {
        owner.lower(): owner if _is_quoted(sql, owner) else owner.lower()
        for source in select.sources
        if (owner := source.alias or source.name)
    }
    only = select.sources[0] if len(select.sources) == 1 else None
    qualifier = owners.get((only.alias or only.name or "").lower(), "") if only else ""
    names = ExpressionName(sql, owners, qualifier)
    first, last = _column(sql, item.expression)
    if column_name(sql, (first, last)) is not None and sql[first].word not in _CONSTANTS:
        if item.name is None and last - first == 1:
            return folded(sql[first])
        return _column_name(sql, names, owners, (first, last), is_outer=is_outer)
    try:
        return names.of(item.expression)
    except UnknownName:
        return " ".join(sql.slice(*item.expression).split()) if _divides(sql, item.part) else None


def _column_name(
    sql: Sql, names: ExpressionName, owners: dict[str, str], part: Part, *, is_outer: bool
) -> str | None:
    """Returns the name of a column, and of a field of a struct, if Spark has another one.

    A field within a query keeps its short name, by which scripts of Penstock refer to it.
    """
    first, last = part
    depth = (last - first + 1) // 2
    has_owner = depth > 1 and folded(sql[first]) in owners
    if depth - has_owner > 1 and is_outer:
        return names.column(part)
    name = sql[last - 1]
    return folded(name) if folded(name) != name.value else None


def _column(sql: Sql, part: Part) -> Part:
    """Returns an expression without parentheses and signs that have no effect: `(a)`, `+a`."""
    first, last = part
    while first < last and (sql.is_sign(first, "+") or sql.closing.get(first) == last - 1):
        closed = sql.is_sign(first, "(")
        if not closed and not sql.is_sign(first, "+"):
            break
        first, last = first + 1, last - closed
    return first, last


def _is_quoted(sql: Sql, name: str) -> bool:
    """Returns whether a name is written in quotes."""
    return any(token.kind == "name" and token.value == name for token in sql.tokens)


def _divides(sql: Sql, part: Part) -> bool:
    """Returns whether a part has a division, whose translation would be its name."""
    return any(sql.is_sign(index, "/") for index in range(*part))
