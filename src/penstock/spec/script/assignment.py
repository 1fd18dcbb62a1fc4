"""The SQL that assigns the columns of a query to the columns of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from penstock.core.errors import SpecError
from penstock.core.names import quote_name
from penstock.core.text import did_you_mean
from penstock.spec.script.reader import TokenReader
from penstock.spec.script.table import TableColumn
from penstock.spec.script.tokens import Text, tokenize
from penstock.spec.tree.nodes import File
from penstock.sql.text.edits import Edit
from penstock.sql.text.query import read_query
from penstock.sql.text.quoting import quote
from penstock.sql.text.sql import read_sql


def assignment(
    file: File,
    query: str,
    columns: Sequence[TableColumn],
    assigned: Sequence[Text] | None,
    kept: Sequence[str] = (),
) -> str:
    """Returns the rows of `query` as rows of a table, assigned by position and cast.

    `assigned` are the columns that INSERT names; the others are null. By default all columns are
    assigned. `kept` are further columns at the end of the query, which stay as they are. A null in
    a column that is NOT NULL is an error of the row. Raises SpecError at an unknown column, and at
    a column that is NOT NULL and not named.
    """
    known = {column.name.value.lower(): column.name.value for column in columns}
    for name in assigned or ():
        if name.value.lower() not in known:
            raise SpecError(
                f'the table has no column "{name.value}"',
                code="unknown-column",
                where=file.location(name.start, name.end),
                hint=did_you_mean(name.value, [*known.values()]),
            )
    names = [name.value.lower() for name in assigned] if assigned else [*known]
    for key, column in zip(known, columns, strict=True):
        if column.required and key not in names:
            raise SpecError(
                f'the column "{column.name.value}" is NOT NULL and has no value',
                code="missing-column",
                where=file.location(assigned[0].start, assigned[-1].end) if assigned else None,
                hint=f"add {column.name.value} to the columns, or remove NOT NULL",
            )
    values = [
        _value(quote_name(name) if name in names else "NULL", column)
        for name, column in zip(known, columns, strict=True)
    ]
    values += map(quote_name, kept)
    aliases = ", ".join(map(quote_name, [*names, *kept]))
    return f"SELECT {', '.join(values)} FROM {query} AS {query}({aliases})"


def _value(value: str, column: TableColumn) -> str:
    """Returns a value with the type and the name of a column."""
    cast = f"CAST({value} AS {column.type.value})"
    if column.required:
        problem = quote(f'column "{column.name.value}" is null; expected a value')
        cast = f"coalesce({cast}, CAST(raise_error({problem}) AS {column.type.value}))"
    return f"{cast} AS {quote_name(column.name.value)}"


def unique_names(query: str) -> Iterator[Edit]:
    """Yields the aliases of selected columns that have the name of another one: `a.n, b.n`."""
    sql = read_sql(query)
    clauses = read_query(sql) if sql is not None else None
    if sql is None or clauses is None:
        return
    seen: Counter[str] = Counter()
    for item in clauses.selects[0].items:
        if item.name is None:
            continue
        name = item.name.lower()
        seen[name] += 1
        if seen[name] > 1 and not item.has_alias:
            end = sql[item.part[1] - 1].end
            yield Edit(end, end, f" AS {quote_name(f'{item.name}_{seen[name]}')}")


def selected_table(query: Text) -> Text | None:
    """Returns the name in `SELECT * FROM name`; None for another query."""
    file = File("", query.value, Path())
    reader = TokenReader(file, tokenize(file))
    if not reader.accept("SELECT", "*", "FROM"):
        return None
    try:
        name = reader.name("the name of a table")
    except SpecError:
        return None
    found = Text(name.value, query.start + name.start, query.start + name.end)
    return found if reader.ended else None


def union(inputs: Sequence[Text]) -> str:
    """Returns the query of the rows of several nodes."""
    return " UNION ALL ".join(f"SELECT * FROM {_identifier(name.value)}" for name in inputs)


def renamed(query: str, columns: Sequence[str]) -> str:
    """Returns the rows of `query` with other names of its columns, by position."""
    name = quote_name(query)
    return f"SELECT * FROM {name} AS {name}({', '.join(map(quote_name, columns))})"


def _identifier(name: str) -> str:
    return name if name.isidentifier() else quote_name(name)
