"""`dynamic_table_check('name', value)`: a call of a function that each dynamic table has."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.core.names import quote_name
from penstock.core.text import plural
from penstock.sql.text.calls import literal
from penstock.sql.text.edits import DialectError, Edit
from penstock.sql.text.sql import Sql, read_sql

NAME = "dynamic_table_check"
_PREFIX = f"{NAME} "


def check_function(table: str) -> str:
    """Returns the name of the function of a table in Spark SQL."""
    return f"{_PREFIX}{table}"


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields calls of the functions of tables. Raises DialectError at another form of the call."""
    for call in sql.calls(NAME):
        name, closing = sql[call.name], sql[call.closing]
        if len(call.arguments) != 2:
            raise DialectError(
                f"expected {NAME}('table', value), found {plural(len(call.arguments), 'argument')}",
                name.start, closing.end, code="wrong-arguments",
            )  # fmt: skip
        (first, last), (value, _) = call.arguments
        table = literal(sql, (first, last))
        if table is None:
            raise DialectError(
                f"expected the name of a table in quotes as the first argument of {NAME}",
                sql[first].start, sql[last - 1].end, "Write the name as a text: 'name'.",
                "wrong-arguments",
            )  # fmt: skip
        start, end = sql[first].start, sql[first].end
        quoted = quote_name(check_function(table))
        place = len(_PREFIX) + 1
        yield [
            Edit(name.start, start, quoted[:place]),
            Edit(start, end, quoted[place:]),
            Edit(end, sql[value].start, "("),
        ]


def checked_tables(text: str) -> Iterator[tuple[str, int]]:
    """Yields the names of the tables that a text checks, and their places there.

    The calls are in Spark SQL, or as written if the text has no translation.
    """
    sql = read_sql(text)
    if sql is None:
        return
    for call in sql.calls(NAME):
        if call.arguments and (table := literal(sql, call.arguments[0])) is not None:
            yield table, sql[call.arguments[0][0]].start
    for index, token in enumerate(sql.tokens):
        if token.kind == "name" and token.value.startswith(_PREFIX) and sql.is_sign(index + 1, "("):
            yield token.value.removeprefix(_PREFIX), token.start + len(_PREFIX) + 1
