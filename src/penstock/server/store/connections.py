"""Connections of the store: named options of connectors, with their secrets encrypted."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import delete, insert, select, update

from penstock.core.errors import StateError, UserError
from penstock.server.store.accounts import User
from penstock.server.store.database import Database
from penstock.server.store.encryption import Encryption
from penstock.server.store.tables import CHANNELS, CONNECTIONS


@dataclass(frozen=True)
class Permissions:
    """Who may use a connection: users and pipelines by ID, and the right that users need.

    None permits all.
    """

    users: tuple[str, ...] | None = None
    pipelines: tuple[str, ...] | None = None
    right: str = "edit"

    def permit(self, user: User | None, pipeline: str | None) -> bool:
        """Returns whether a user may use the connection in a pipeline.

        None is the server for `user`, and a pipeline without an ID for `pipeline`.
        """
        if self.pipelines is not None and pipeline not in self.pipelines:
            return False
        return user is None or self.permit_user(user)

    def permit_user(self, user: User) -> bool:
        """Returns whether a user may use the connection, in some pipeline."""
        if "admin" in user.rights:
            return True
        named = self.users is None or user.name in self.users
        return named and self.right in user.rights


@dataclass(frozen=True)
class StoredConnection:
    """A connection. `secrets` have the same structure as `options`, which are without them."""

    name: str
    type: str
    options: Mapping[str, Any]
    secrets: Mapping[str, Any] = field(repr=False)
    permissions: Permissions
    author: str
    time: str


class Connections:
    """The connections of a store."""

    def __init__(self, database: Database, encryption: Encryption) -> None:
        self._database, self._encryption = database, encryption

    def all(self) -> list[StoredConnection]:
        """Returns all connections, by name. Raises StateError without the key of secrets."""
        rows = self._database.rows(select(CONNECTIONS).order_by(CONNECTIONS.c.name))
        return [self._connection(row) for row in rows]

    def get(self, name: str) -> StoredConnection:
        """Returns a connection. Raises UserError for an unknown name."""
        row = self._database.first(select(CONNECTIONS).where(CONNECTIONS.c.name == name))
        if row is None:
            raise UserError(f'there is no connection "{name}"', code="no-connection")
        return self._connection(row)

    def stamp(self) -> str:
        """Returns a text that changes with the connections."""
        rows = self._database.rows(select(CONNECTIONS).order_by(CONNECTIONS.c.name))
        return hashlib.sha256(repr(rows).encode()).hexdigest()[:12]

    def add(self, connection: StoredConnection) -> None:
        """Adds a connection. Raises StateError for an existing name."""
        name = connection.name
        known = select(CONNECTIONS.c.name).where(CONNECTIONS.c.name == name)
        if self._database.first(known) is not None:
            raise StateError(
                f'the connection "{name}" exists', code="existing-connection",
                hint="Choose another name, or change the existing connection.",
            )  # fmt: skip
        self._database.execute(insert(CONNECTIONS).values(name=name, **self._row(connection)))

    def set(self, connection: StoredConnection) -> None:
        """Replaces a connection. Raises UserError for an unknown name."""
        mine = CONNECTIONS.c.name == connection.name
        row = self._row(connection)
        if not self._database.execute(update(CONNECTIONS).where(mine).values(row)):
            self.get(connection.name)

    def remove(self, name: str) -> None:
        """Removes a connection. Raises UserError for an unknown name."""
        if not self._database.execute(delete(CONNECTIONS).where(CONNECTIONS.c.name == name)):
            self.get(name)

    def rotate(self) -> int:
        """Encrypts all secrets of the store with a new key. Returns their number."""
        self._encryption.begin_rotation()
        count = 0
        with self._database.transaction() as connection:
            for table, column in ((CONNECTIONS, "secrets"), (CHANNELS, "secret")):
                rows = connection.execute(select(table.c.name, table.c[column])).all()
                for name, text in rows:
                    if text is not None:
                        new = self._encryption.encrypt(self._encryption.decrypt(text))
                        changed = update(table).where(table.c.name == name)
                        connection.execute(changed.values({column: new}))
                        count += 1
        self._encryption.end_rotation()
        return count

    def _row(self, connection: StoredConnection) -> dict[str, Any]:
        permissions, secrets = connection.permissions, dict(connection.secrets)
        return {
            "type": connection.type, "options": dict(connection.options),
            "secrets": self._encryption.encrypt(secrets) if secrets else None,
            "users": _list(permissions.users), "pipelines": _list(permissions.pipelines),
            "right": permissions.right, "author": connection.author, "time": connection.time,
        }  # fmt: skip

    def _connection(self, row: Mapping[str, Any]) -> StoredConnection:
        secrets = {} if row["secrets"] is None else self._encryption.decrypt(row["secrets"])
        permissions = Permissions(_tuple(row["users"]), _tuple(row["pipelines"]), row["right"])
        return StoredConnection(
            row["name"], row["type"], row["options"], secrets, permissions, row["author"],
            row["time"],
        )  # fmt: skip


def _list(names: tuple[str, ...] | None) -> list[str] | None:
    return None if names is None else list(names)


def _tuple(names: list[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)
