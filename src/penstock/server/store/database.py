"""Opening of the store, and transactions in it."""

from __future__ import annotations

import fcntl
import os
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError

from penstock.core.errors import MissingExtra, PenstockError, StateError, Transient, UserError
from penstock.core.files.private_files import create_directory, open_private
from penstock.core.known_secrets import remember_secret
from penstock.server.store.lease import Lease
from penstock.server.store.upgrade import upgrade

FILE = "server.db"
LOCK = "server.lock"
CONNECTIONS = 20
CONNECT_SECONDS = 10
_ANY = ""
"""The name of changes that may concern each table."""
BUSY_MILLISECONDS = 10_000
"""The time that a transaction waits for another one of SQLite."""


class Database:
    """The store. Its methods may be called from any thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.lease = Lease(engine)
        self._lock = threading.Lock()
        self._changes: Counter[str] = Counter()

    @classmethod
    def open(cls, data: Path, url: str | None = None) -> Database:
        """Opens the store in a directory, or at a URL, takes its lease, and upgrades its tables.

        Raises StateError if the store cannot be opened, is of a newer version, or has another
        server.
        """
        create_directory(data)
        if url is None:
            open_private(data / FILE, "a").close()
        try:
            store = cls(_make_engine(data, url))
            store.lease.take()
            try:
                upgrade(store._engine)
            except BaseException:
                store.close()
                raise
        except SQLAlchemyError as error:
            raise StateError(
                "the store of the server cannot be opened", code="store-not-opened",
                detail=_reason(error),
                hint="Correct --store, or the rights of the directory of --data.",
            ) from error  # fmt: skip
        except ModuleNotFoundError as error:
            raise MissingExtra.of("postgres", error.name or "psycopg") from error
        return store

    @property
    def dialect(self) -> str:
        """The name of the database: sqlite or postgresql."""
        return self._engine.dialect.name

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Runs a block in one transaction.

        Raises StateError for a failure, a conflict, and without the lease of the store.
        """
        self.lease.require()
        try:
            with self._transaction() as connection:
                yield connection
        finally:
            self._count_change(_ANY)

    def changes_of(self, tables: Iterable[str]) -> int:
        """Returns a number that increases after each change of tables by this process.

        It also increases when the lease is taken again, since another server may have had it, and
        with each call while it is lost.
        """
        if self.lease.is_lost:
            self._count_change(_ANY)
        return (
            self.lease.times_taken
            + self._changes[_ANY]
            + sum(self._changes[name] for name in tables)
        )

    def _count_change(self, table: str) -> None:
        with self._lock:
            self._changes[table] += 1

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
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
            raise _failure(error) from error

    def rows(self, statement: Any) -> list[dict[str, Any]]:
        """Returns the rows of a query as dictionaries."""
        with self._transaction() as connection:
            return [dict(row) for row in connection.execute(statement).mappings()]

    def first(self, statement: Any) -> dict[str, Any] | None:
        """Returns the first row of a query; None without rows."""
        return next(iter(self.rows(statement)), None)

    def execute(self, statement: Any) -> int:
        """Executes a statement in a transaction of its own. Returns the number of changed rows.

        Raises StateError as `transaction` does.
        """
        self.lease.require()
        try:
            with self._transaction() as connection:
                return connection.execute(statement).rowcount
        finally:
            self._count_change(statement.table.name)

    def close(self) -> None:
        self.lease.release()
        self._engine.dispose()


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


def _make_engine(data: Path, url: str | None) -> Engine:
    """Returns the engine of a store. Raises errors of SQLAlchemy for another database."""
    address = make_url(url or f"sqlite:///{data / FILE}")
    options: dict[str, Any] = {}
    if address.drivername in ("postgres", "postgresql"):
        address = address.set(drivername="postgresql+psycopg")
    if address.password:
        remember_secret(str(address.password))
    if address.get_backend_name() == "postgresql":
        options["connect_args"] = {"connect_timeout": CONNECT_SECONDS}
        options["pool_pre_ping"] = True
    engine = create_engine(address, pool_size=CONNECTIONS, **options)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _prepare_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _: object) -> None:
    for pragma in ("journal_mode=WAL", f"busy_timeout={BUSY_MILLISECONDS}", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _failure(error: SQLAlchemyError) -> PenstockError:
    """Returns the error of a store that is full, locked or fails. Nothing of it was stored."""
    cause = getattr(error, "orig", None)
    reason = getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None) or ""
    if reason.startswith("SQLITE_FULL") or reason == "53100":
        return StateError(
            "the disk of the store is full; the change was not stored", code="store-full",
            detail=_reason(error), hint="Free space on the disk, and repeat the request.",
        )  # fmt: skip
    if reason.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")) or reason in ("55P03", "40P01", "40001"):
        return Transient(
            "another program has locked the store; the change was not stored", code="store-locked",
            detail=_reason(error), hint="End the other program, and repeat the request.",
        )  # fmt: skip
    return StateError(
        "the store of the server failed", code="store-failed", detail=_reason(error),
        hint="Inspect the disk, or restart the database of the store.",
    )  # fmt: skip


def _reason(error: SQLAlchemyError) -> str:
    return str(getattr(error, "orig", None) or error)
