"""Statements of SQL shells and databases that a script does not have."""

from __future__ import annotations

from typing import NamedTuple

from penstock.core.errors import SpecError
from penstock.spec.script.reader import TokenReader


class Counterpart(NamedTuple):
    """The reason why a script does not have a statement, and what to write instead."""

    reason: str
    hint: str


_SHELL = "is a statement of the shell"
_DESCRIBE = Counterpart(
    _SHELL, "enter it in penstock sql FILE; penstock explain FILE prints the columns of all tables"
)
_SETTINGS = Counterpart(
    "without a setting " + _SHELL, "write SET name = value; penstock sql lists the settings"
)
_NO_CHANGES = "is not supported: a pipeline inserts rows"
_TOGETHER = Counterpart(
    "is not supported: there are no transactions",
    "remove the statement: all INSERT statements of a script run together",
)
_CATALOG = Counterpart(
    "is not supported: there are no catalogs and databases",
    "remove the statement; a table has the name of its CREATE TABLE statement",
)
_COUNTERPARTS = {
    "DROP": Counterpart(
        _SHELL, "remove the definition from the script; penstock sql has DROP TABLE and DROP VIEW"
    ),
    "SHOW": _DESCRIBE,
    "DESCRIBE": _DESCRIBE,
    "DESC": _DESCRIBE,
    "EXPLAIN": Counterpart(_SHELL, "run penstock explain FILE, or enter it in penstock sql FILE"),
    "RESET": Counterpart(_SHELL, "remove the SET statement"),
    "SET": _SETTINGS,
    "ALTER": Counterpart("is not supported", "change the CREATE statement"),
    "UPDATE": Counterpart(_NO_CHANGES, "compute the new values in the query of a view"),
    "DELETE": Counterpart(_NO_CHANGES, "select the rows to keep in the query of a view"),
    "MERGE": Counterpart(_NO_CHANGES, "write the rows with INSERT INTO a table with a PRIMARY KEY"),
    "BEGIN": _TOGETHER,
    "COMMIT": _TOGETHER,
    "ROLLBACK": _TOGETHER,
    "EXECUTE": _TOGETHER,
    "END": _TOGETHER,
    "USE": _CATALOG,
}


def unsupported_statement(reader: TokenReader) -> SpecError | None:
    """Returns the error of a statement that databases have, or None."""
    first = reader.first_word()
    counterpart = _COUNTERPARTS.get(first)
    if counterpart is None:
        return None
    return SpecError(
        f"{first} {counterpart.reason}",
        code="unsupported-statement",
        where=reader.start,
        hint=counterpart.hint,
    )
