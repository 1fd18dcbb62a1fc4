"""Functions of the store: Python files with functions for SQL, and their versions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, func, insert, select

from penstock.core.errors import UserError
from penstock.runtime.state.directory import now
from penstock.server.store.database import Database
from penstock.server.store.tables import FUNCTIONS


@dataclass(frozen=True)
class FunctionVersion:
    """A version of a file of functions, with the signatures of its functions."""

    name: str
    version: int
    text: str
    signatures: list[str]
    author: str
    note: str
    time: str


class StoredFunctions:
    """The functions of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def latest(self) -> list[FunctionVersion]:
        """Returns the last version of each file, by name."""
        last = (
            select(FUNCTIONS.c.name, func.max(FUNCTIONS.c.version).label("version"))
            .group_by(FUNCTIONS.c.name)
            .subquery()
        )
        same = (FUNCTIONS.c.name == last.c.name) & (FUNCTIONS.c.version == last.c.version)
        rows = self._database.rows(select(FUNCTIONS).join(last, same).order_by(FUNCTIONS.c.name))
        return [FunctionVersion(**row) for row in rows]

    def versions(self, name: str) -> list[FunctionVersion]:
        """Returns the versions of a file, last first. Raises UserError for an unknown name."""
        query = select(FUNCTIONS).where(FUNCTIONS.c.name == name)
        rows = self._database.rows(query.order_by(FUNCTIONS.c.version.desc()))
        if not rows:
            raise UserError(f'the server has no functions "{name}"', code="no-function")
        return [FunctionVersion(**row) for row in rows]

    @contextmanager
    def new_version(
        self, name: str, text: str, signatures: list[str], author: str, note: str
    ) -> Iterator[FunctionVersion]:
        """Adds a version, unless the block raises an error."""
        with self._database.transaction() as connection:
            query = select(func.max(FUNCTIONS.c.version)).where(FUNCTIONS.c.name == name)
            number = (connection.execute(query).scalar() or 0) + 1
            version = FunctionVersion(name, number, text, signatures, author, note, now())
            values: dict[str, Any] = version.__dict__
            connection.execute(insert(FUNCTIONS).values(values))
            yield version

    def remove(self, name: str) -> None:
        """Removes all versions of a file."""
        self._database.execute(delete(FUNCTIONS).where(FUNCTIONS.c.name == name))
