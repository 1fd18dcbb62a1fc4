"""A query in Spark SQL, given the relations that it reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.sql.dialect.over import computed_by_window
from penstock.sql.dialect.query import read_query
from penstock.sql.dialect.relation import NOTHING, Output, Relation
from penstock.sql.dialect.text import DialectError, Translation
from penstock.sql.dialect.tokens import read_sql
from penstock.sql.dialect.windows import Windows


@dataclass(frozen=True)
class Bound:
    """A query in Spark SQL."""

    translation: Translation
    output: Output = NOTHING
    by_window: bool = False
    """Whether the query is computed on the rows of complete windows, batch by batch."""


def bind(query: Translation, relations: Mapping[str, Relation], *, by_batch: bool = False) -> Bound:
    """Returns a query with the windows of Spark. `relations` are by name in lower case.

    With `by_batch` the query is computed on each batch anyway. Raises DialectError at a place of
    the text that `query` came from.
    """
    sql = read_sql(query.text)
    clauses = read_query(sql) if sql is not None else None
    if sql is None or clauses is None:
        return Bound(query)
    try:
        windows = Windows(sql, clauses, relations)
        by_window = not by_batch and computed_by_window(sql, clauses, relations, windows.outputs)
    except DialectError as error:
        raise error.moved(query) from None
    return Bound(query.edit(dict.fromkeys(windows.edits)), windows.output, by_window)
