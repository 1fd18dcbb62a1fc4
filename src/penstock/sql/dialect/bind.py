"""A query in Spark SQL, given the relations that it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from penstock.sql.dialect.over import computed_by_window
from penstock.sql.dialect.relation import NOTHING, InputRelation, Output
from penstock.sql.dialect.windows import Windows
from penstock.sql.text.edits import DialectError, Translation
from penstock.sql.text.query import read_query
from penstock.sql.text.sql import read_sql


@dataclass(frozen=True)
class Bound:
    """A query in Spark SQL."""

    translation: Translation
    output: Output = NOTHING
    by_window: bool = False
    """Whether the query is computed on the rows of complete windows, batch by batch."""
    columns: Mapping[str, Sequence[str | None]] = field(default_factory=dict)
    """The columns of relations whose columns are known, by name in lower case."""
    in_place: Mapping[str, InputRelation] = field(default_factory=dict)
    """The views whose queries the text has in place of the views, by name in lower case."""
    hidden: Set[str] = frozenset()
    """The views whose windows a join compares, and which do not select them."""


def bind(
    query: Translation, relations: Mapping[str, InputRelation], *, by_batch: bool = False
) -> Bound:
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
    columns = {
        name: relation.output.names
        for name, relation in relations.items()
        if relation.output.names is not None
    }
    edited = query.edit(dict.fromkeys(windows.edits))
    return Bound(edited, windows.output, by_window, columns, windows.in_place, windows.hidden)
