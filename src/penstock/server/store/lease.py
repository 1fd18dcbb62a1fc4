"""The lease of a store in PostgreSQL: one server at a time acts for its pipelines.

A session of its own has an advisory lock of the database, which ends with the session. A store in
SQLite is in the data directory, whose lock (`database.leadership`) is its lease.
"""

from __future__ import annotations

import os
import socket
import threading
from contextlib import suppress

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import SQLAlchemyError

from penstock.core.errors import StateError

_KEY = "hashtext('penstock.server.' || current_schema())"
_TAKE = text(f"SELECT pg_try_advisory_lock({_KEY})")
_OWNER = text(
    "SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE granted"
    f" AND locktype = 'advisory' AND pid <> pg_backend_pid() AND objid::bigint"
    f" = ({_KEY}::bigint & 4294967295)"
)
_SETTINGS = (
    "SET tcp_keepalives_idle = 10", "SET tcp_keepalives_interval = 5",
    "SET tcp_keepalives_count = 3", "SET idle_session_timeout = 0",
)  # fmt: skip
"""The settings by which the database server finds the end of a machine."""


class Lease:
    """The lease of a store. Safe for several threads."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._connection: Connection | None = None
        self._lock = threading.Lock()
        self._lost: StateError | None = None
        self.times_taken = 0

    @property
    def is_of_one_machine(self) -> bool:
        """Whether all servers of the store are on the machine that has it."""
        return self._engine.dialect.name != "postgresql"

    @property
    def is_lost(self) -> bool:
        """Whether the last `check` has found the lease lost."""
        return self._lost is not None

    def require(self) -> None:
        """Raises StateError if the last `check` has found the lease lost. Does not wait."""
        if (lost := self._lost) is not None:
            raise StateError(lost.message, code=lost.code, detail=lost.detail, hint=lost.hint)

    def take(self) -> None:
        """Takes the lease. Raises StateError if another server has it, and errors of SQLAlchemy."""
        if self.is_of_one_machine:
            return
        with self._lock:
            owner = self._take()
        if owner is not None:
            raise StateError(
                f"another server uses the store: {owner}", code="already-serving",
                hint="Stop the other server, or choose another database with --store.",
            )  # fmt: skip

    def check(self) -> None:
        """Raises StateError without the lease. A lease that a lost session had is taken again."""
        if self.is_of_one_machine:
            return
        self._lost = self._check()
        self.require()

    def _check(self) -> StateError | None:
        """Returns the error of a lease that is lost, and could not be taken again."""
        with self._lock:
            try:
                if self._connection is not None:
                    self._connection.exec_driver_sql("SELECT 1")
                    return None
            except SQLAlchemyError:
                self._drop()
            try:
                owner = self._take()
            except SQLAlchemyError as error:
                return StateError(
                    "the lease of the store is lost: its database does not answer",
                    code="lease-lost", detail=str(getattr(error, "orig", None) or error),
                    hint="Restart the database of the store. Runs continue meanwhile.",
                )  # fmt: skip
        if owner is None:
            return None
        return StateError(
            f"another server has the lease of the store: {owner}", code="lease-lost",
            hint="Repeat the request there, or stop one of the two servers.",
        )  # fmt: skip

    def release(self) -> None:
        """Releases the lease."""
        with self._lock:
            self._drop()

    def _take(self) -> str | None:
        """Takes the lease; returns the name of the other server that has it."""
        connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        try:
            name = f"penstock serve, {socket.gethostname()}, process {os.getpid()}"
            statement = text("SELECT set_config('application_name', :name, false)")
            connection.execute(statement, {"name": name[:63]})
            for setting in _SETTINGS:
                with suppress(SQLAlchemyError):  # of later versions
                    connection.exec_driver_sql(setting)
            if connection.execute(_TAKE).scalar():
                self._connection = connection
                self.times_taken += 1
                return None
            return str(connection.execute(_OWNER).scalar() or "an unknown process")
        finally:
            if self._connection is not connection:
                connection.invalidate()
                connection.close()

    def _drop(self) -> None:
        if self._connection is not None:
            with suppress(SQLAlchemyError):
                self._connection.invalidate()  # closes the session, and with it the lock
                self._connection.close()
            self._connection = None
