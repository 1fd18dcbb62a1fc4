"""Users, their rights, and the tokens by which they are recognized."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, get_args

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error
from sqlalchemy import delete, insert, select, update

from penstock.core.errors import UserError
from penstock.runtime.state.directory import now
from penstock.server.store.database import Database
from penstock.server.store.known import Known
from penstock.server.store.tables import TOKENS, USERS

Right = Literal["view", "data", "operate", "edit", "admin"]
RIGHTS: tuple[Right, ...] = get_args(Right)
"""view: pipelines without rows; data: rows, payloads and logs; operate: start, stop, replay;
edit: texts, and thereby code with the rights of the server; admin: users."""

Kind = Literal["token", "session", "code"]
LIFETIME = {"session": timedelta(days=7), "code": timedelta(minutes=15)}
MIN_PASSWORD = 12
TOKEN_SECONDS = 1.0
"""The time after which the removal of a token by another process has an effect."""
_HASHER = PasswordHasher()
_NO_HASH = (
    "$argon2id$v=19$m=65536,t=3,p=4$+9en8Ja9j0Fxs64MXH8WPg"
    "$iuHBS9cTDkDuMvVqp3OZ3ZftAzGYqS4KwI+WneNGkus"
)
"""The hash that the password of an unknown user is compared with: both take the same time."""


@dataclass(frozen=True)
class User:
    """A user with rights, as a request has them."""

    name: str
    rights: frozenset[str]

    def may(self, right: Right) -> bool:
        return right in self.rights or "admin" in self.rights


@dataclass(frozen=True)
class _Token:
    """A token of the store."""

    user: User
    kind: Kind
    expires: str | None

    def user_for(self, kinds: tuple[Kind, ...]) -> User | None:
        """Returns the user; None for a token of another kind, or one that has expired."""
        is_valid = self.kind in kinds and (self.expires is None or self.expires >= now())
        return self.user if is_valid else None


class Accounts:
    """The users and tokens of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._tokens = Known[_Token](database, TOKENS, USERS, seconds=TOKEN_SECONDS)
        """Tokens by hash."""

    def users(self) -> list[dict[str, Any]]:
        """Returns the users without their hashes, by name."""
        rows = self._database.rows(select(USERS).order_by(USERS.c.name))
        return [
            {"name": row["name"], "rights": row["rights"], "time": row["time"],
             "has_password": row["password"] is not None}
            for row in rows
        ]  # fmt: skip

    def add_user(self, name: str, rights: Iterable[str], password: str | None = None) -> None:
        """Adds a user.

        Raises UserError for an existing name, an unknown right or a short password.
        """
        if self._user(name) is not None:
            raise UserError(f'the user "{name}" exists', code="existing-user")
        row = {"name": name, "rights": _checked(rights), "time": now(), "password": None}
        if password is not None:
            row["password"] = _hash(password)
        self._database.execute(insert(USERS).values(row))

    def set_user(
        self, name: str, rights: Iterable[str] | None = None, password: str | None = None
    ) -> None:
        """Changes the rights or the password of a user, and ends the sessions of the user.

        Raises UserError for an unknown user, and if no user with the right `admin` would remain.
        """
        values: dict[str, Any] = {}
        if rights is not None:
            values["rights"] = _checked(rights)
            self._check_admins(name, values["rights"])
        if password is not None:
            values["password"] = _hash(password)
        self._require(name)
        if not values:
            return
        with self._database.transaction() as connection:
            connection.execute(update(USERS).where(USERS.c.name == name).values(values))
            sessions = (TOKENS.c.user == name) & (TOKENS.c.kind == "session")
            connection.execute(delete(TOKENS).where(sessions))

    def remove_user(self, name: str) -> None:
        """Removes a user with all tokens; errors as of `set_user`."""
        self._require(name)
        self._check_admins(name, [])
        with self._database.transaction() as connection:
            connection.execute(delete(TOKENS).where(TOKENS.c.user == name))
            connection.execute(delete(USERS).where(USERS.c.name == name))

    def authenticate(self, name: str, password: str) -> User | None:
        """Returns the user with this password; None for another name or password."""
        row = self._user(name)
        try:
            _HASHER.verify((row or {}).get("password") or _NO_HASH, password)
        except Argon2Error:
            return None
        return User(name, frozenset(row["rights"])) if row and row["password"] else None

    def issue(
        self, user: str, kind: Kind, name: str | None = None,
        rights: Iterable[str] | None = None, lifetime: timedelta | None = None,
    ) -> str:  # fmt: skip
        """Returns a new random token of a user, of which only the hash is stored.

        `rights` limit those of the user. Raises UserError for an existing name of a token.
        """
        self._require(user)
        name = name or f"{kind}-{secrets.token_hex(4)}"
        existing = (TOKENS.c.user == user) & (TOKENS.c.name == name)
        if self._database.first(select(TOKENS.c.id).where(existing)):
            raise UserError(f'the token "{name}" exists', code="existing-token")
        token = f"penstock_{secrets.token_urlsafe(32)}"
        lifetime = lifetime or LIFETIME.get(kind)
        self._database.execute(insert(TOKENS).values(
            id=secrets.token_hex(6), user=user, name=name, hash=_digest(token), kind=kind,
            rights=_checked(RIGHTS if rights is None else rights), time=now(),
            expires=None if lifetime is None else _time(datetime.now(UTC) + lifetime),
        ))  # fmt: skip
        return token

    def user_of(self, token: str, kinds: tuple[Kind, ...] = ("token", "session")) -> User | None:
        """Returns the user of a valid token, with the rights that both have; None otherwise."""
        digest = _digest(token)
        found = self._tokens.read(digest, lambda: self._token(digest))
        return None if found is None else found.user_for(kinds)

    def known_user_of(self, token: str, kinds: tuple[Kind, ...]) -> User | None:
        """Returns the user of a token that `user_of` found a moment ago. Does not wait."""
        known = self._tokens.get(_digest(token))
        return None if known is None else known.user_for(kinds)

    def _token(self, digest: str) -> _Token | None:
        row = self._database.first(
            select(TOKENS, USERS.c.rights.label("of_user"))
            .join(USERS, USERS.c.name == TOKENS.c.user)
            .where(TOKENS.c.hash == digest)
        )
        if row is None:
            return None
        of_user = RIGHTS if "admin" in row["of_user"] else row["of_user"]
        user = User(row["user"], frozenset(of_user) & frozenset(row["rights"]))
        return _Token(user, row["kind"], row["expires"])

    def redeem(self, code: str) -> User | None:
        """Returns the user of a code, which is valid once; None for an invalid code."""
        user = self.user_of(code, ("code",))
        return user if user is not None and self.revoke(code) else None

    def revoke(self, token: str) -> bool:
        """Removes a token. Returns whether it existed."""
        return bool(self._database.execute(delete(TOKENS).where(TOKENS.c.hash == _digest(token))))

    def tokens(self, user: str) -> list[dict[str, Any]]:
        """Returns the tokens for programs of a user, without the tokens themselves."""
        columns = [TOKENS.c[name] for name in ("id", "name", "rights", "time", "expires")]
        mine = (TOKENS.c.user == user) & (TOKENS.c.kind == "token")
        return self._database.rows(select(*columns).where(mine).order_by(TOKENS.c.name))

    def remove_token(self, user: str, id: str) -> None:
        """Removes a token of a user by its ID. Raises UserError for an unknown ID."""
        mine = (TOKENS.c.user == user) & (TOKENS.c.id == id)
        if not self._database.execute(delete(TOKENS).where(mine)):
            raise UserError("there is no such token", code="unknown-token")

    def _user(self, name: str) -> dict[str, Any] | None:
        return self._database.first(select(USERS).where(USERS.c.name == name))

    def _require(self, name: str) -> None:
        if self._user(name) is None:
            raise UserError(f'there is no user "{name}"', code="unknown-user")

    def _check_admins(self, name: str, rights: Iterable[str]) -> None:
        others = [user for user in self.users() if user["name"] != name]
        if "admin" not in rights and not any("admin" in user["rights"] for user in others):
            raise UserError(
                "no user with the right admin would remain", code="last-admin",
                hint="Give another user the right admin first.",
            )  # fmt: skip


def _checked(rights: Iterable[str]) -> list[str]:
    given = set(rights)
    unknown = sorted(given - set(RIGHTS))
    if unknown:
        raise UserError(
            f'there is no right "{unknown[0]}"', code="unknown-right",
            hint=f"Use {', '.join(RIGHTS)}.",
        )  # fmt: skip
    return [right for right in RIGHTS if right in given]


def _hash(password: str) -> str:
    if len(password) < MIN_PASSWORD:
        raise UserError(
            f"expected a password of at least {MIN_PASSWORD} characters", code="short-password"
        )
    return _HASHER.hash(password)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
