"""Requests with an idempotency key, and their answers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import ColumnElement, delete, insert, select, update

from penstock.core.errors import StateError, UserError
from penstock.runtime.state.directory import now
from penstock.server.store.database import Database
from penstock.server.store.tables import REQUESTS

LIFETIME = timedelta(days=1)
MAX_SECONDS = timedelta(minutes=15)
"""The time after which a request without an answer has ended with its server."""


@dataclass(frozen=True)
class Answer:
    """The answer to a request."""

    status: int
    content: str


class Requests:
    """The requests of a store that have a key."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, user: str, key: str, digest: str) -> Answer | None:
        """Records a request. Returns the answer of an equal one with the same key.

        Raises UserError if the key is that of another request, and StateError while the equal
        request is under way.
        """
        self._remove_old()
        row = self._database.first(select(REQUESTS).where(_is(user, key)))
        if row is None:
            values = {"user": user, "key": key, "digest": digest, "time": now()}
            self._database.execute(insert(REQUESTS).values(values))  # a conflict is an error
            return None
        if row["digest"] != digest:
            raise UserError(
                "the idempotency key is that of another request", code="reused-key",
                hint="Use a new key for each request.",
            )  # fmt: skip
        if row["status"] is None:
            raise StateError(
                "the request with this idempotency key is under way", code="request-under-way",
                hint="Try again when it has ended.",
            )  # fmt: skip
        return Answer(row["status"], row["content"])

    def end(self, user: str, key: str, answer: Answer) -> None:
        """Records the answer of a request."""
        values = {"status": answer.status, "content": answer.content}
        self._database.execute(update(REQUESTS).where(_is(user, key)).values(values))

    def forget(self, user: str, key: str) -> None:
        """Removes a request that failed."""
        self._database.execute(delete(REQUESTS).where(_is(user, key)))

    def _remove_old(self) -> None:
        old = REQUESTS.c.time < _ago(LIFETIME)
        unanswered = REQUESTS.c.status.is_(None) & (REQUESTS.c.time < _ago(MAX_SECONDS))
        self._database.execute(delete(REQUESTS).where(old | unanswered))


def _is(user: str, key: str) -> ColumnElement[bool]:
    return (REQUESTS.c.user == user) & (REQUESTS.c.key == key)


def _ago(age: timedelta) -> str:
    return (datetime.now(UTC) - age).strftime("%Y-%m-%dT%H:%M:%SZ")
