"""Opening of the store, and transactions in it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from sqlalchemy import Connection, Engine, create_engine, event, insert, select
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError

from penstock.core.errors import StateError, UserError
from penstock.core.files.private_files import create_directory, open_private
from penstock.server.store.tables import LAYOUT, METADATA, STORE

FILE = "server.db"
LOCK = "server.lock"
CONNECTIONS = 20


class Database:
    """The store. Its methods may be called from any thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @classmethod
    def open(cls, data: Path, url: str | None = None) -> Database:
        """Opens the store in a directory, or at a URL, and creates missing tables.

        Raises StateError if the store cannot be opened or is of a newer version.
        """
        create_directory(data)
        if url is None:
            open_private(data / FILE, "a").close()
        try:
            engine = create_engine(
                url or f"sqlite:///{data / FILE}", pool_pre_ping=True, pool_size=CONNECTIONS
            )
            if engine.dialect.name == "sqlite":
                event.listen(engine, "connect", _prepare_sqlite)
            METADATA.create_all(engine)
            store = cls(engine)
            store._check_layout()
        except SQLAlchemyError as error:
            raise StateError(
                "the store of the server cannot be opened", code="store-not-opened",
                detail=str(getattr(error, "orig", None) or error),
                hint="Correct --store, or the rights of the directory of --data.",
            ) from error  # fmt: skip
        return store

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Runs a block in one transaction. Raises StateError for a failure or a conflict."""
        try:
            with self._engine.begin() as connection:
                yield connection
        except DataError as error:
            raise UserError(
                "the store cannot have a value of the request", code="invalid-request",
                detail=str(error.orig), hint="Remove NUL characters and excessive numbers.",
            ) from error  # fmt: skip
        except IntegrityError as error:
            raise StateError(
                "another request changed the same thing at the same time", code="conflict",
                hint="Read it again, then repeat the request.",
            ) from error  # fmt: skip
        except SQLAlchemyError as error:
            raise StateError(
                "the store of the server failed", code="store-failed",
                detail=str(getattr(error, "orig", None) or error),
                hint="Free space on the disk, or restart the database of the store.",
            ) from error  # fmt: skip

    def rows(self, statement: Any) -> list[dict[str, Any]]:
        """Returns the rows of a query as dictionaries."""
        with self.transaction() as connection:
            return [dict(row) for row in connection.execute(statement).mappings()]

    def first(self, statement: Any) -> dict[str, Any] | None:
        """Returns the first row of a query; None without rows."""
        return next(iter(self.rows(statement)), None)

    def execute(self, statement: Any) -> int:
        """Executes a statement in a transaction of its own. Returns the number of changed rows."""
        with self.transaction() as connection:
            return connection.execute(statement).rowcount

    def close(self) -> None:
        self._engine.dispose()

    def _check_layout(self) -> None:
        with self.transaction() as connection:
            layout = connection.execute(select(STORE.c.layout)).scalar()
            if layout is None:
                connection.execute(insert(STORE).values(layout=LAYOUT))
            elif layout > LAYOUT:
                raise StateError(
                    "the store was written by a newer version of Penstock", code="newer-state",
                    hint="Upgrade Penstock, or choose another directory with --data.",
                )  # fmt: skip


@contextmanager
def leadership(data: Path) -> Iterator[None]:
    """Makes this process the one server of a data directory, during the block.

    Raises StateError if another server has the directory. The lock ends with the process.
    """
    create_directory(data)
    with open_private(data / LOCK, "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StateError(
                f"another server uses {data} (process {_owner(file)})", code="already-serving",
                hint="Stop the other server, or choose another directory with --data.",
            ) from None  # fmt: skip
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def _owner(file: IO[str]) -> str:
    file.seek(0)
    return file.read() or "?"


def _prepare_sqlite(connection: Any, _: object) -> None:
    for pragma in ("journal_mode=WAL", "busy_timeout=10000", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")
