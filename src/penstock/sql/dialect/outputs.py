"""`FROM router.large`: an output of a node, which is a relation with one name in Spark."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.core.names import quote_name
from penstock.sql.text.clauses import Query, Source
from penstock.sql.text.edits import Edit, Translation
from penstock.sql.text.query import read_query, subqueries
from penstock.sql.text.sql import Sql, read_sql

_TOKENS = 3
"""The tokens of `router.large`."""


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields the names of outputs in backticks, each with the name of the output as its alias."""
    query = read_query(sql) if any(token.is_sign(".") for token in sql.tokens) else None
    if query is None:
        return
    for source in _sources(sql, query):
        first, last = source.part
        if source.query is None and source.name is not None and last - first == _TOKENS:
            node, output = sql[first].value, sql[last - 1].value
            alias = "" if source.alias is not None else f" AS {quote_name(output)}"
            text = f"{quote_name(f'{node}.{output}')}{alias}"
            yield [Edit(sql[first].start, sql[last - 1].end, text)]


def with_outputs(text: str) -> str:
    """Returns a text with the names of outputs in backticks."""
    sql = read_sql(text)
    found = [] if sql is None else [edit for group in edits(sql) for edit in group]
    return Translation.of(text).edit(found).text


def _sources(sql: Sql, query: Query) -> Iterator[Source]:
    """Yields the relations of a query, of its table expressions and of its subqueries."""
    for select in query.walk():
        yield from select.sources
        for inner in subqueries(sql, select):
            yield from _sources(sql, inner)
