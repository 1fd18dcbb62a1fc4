"""Calls of Java methods from SQL, which are code: rejected where Python code is."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.core.python_permission import CODE, HINT, python_permitted
from penstock.sql.text.edits import DialectError, Edit
from penstock.sql.text.sql import Sql

FUNCTIONS = frozenset({"reflect", "java_method", "try_reflect", "identifier"})
"""Functions that call any method of Java, and the clause that may name them by a text."""


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields no edits. Raises DialectError at a call of Java where code is not permitted."""
    for index, name in enumerate(() if python_permitted() else sql.tokens):
        called = name.kind != "string" and sql.is_sign(index + 1, "(")
        if called and name.value.lower() in FUNCTIONS:
            message = f"the call of {name.value} is not permitted on this server"
            raise DialectError(message, name.start, name.end, HINT, CODE)
    yield from ()
