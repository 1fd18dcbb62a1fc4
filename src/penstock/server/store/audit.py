"""The audit: one row for each call that changes something or shows rows."""

from __future__ import annotations

from typing import Any

from sqlalchemy import insert, select

from penstock.runtime.state.directory import now
from penstock.server.store.database import Database
from penstock.server.store.tables import AUDIT


class Audit:
    """The audit of a store. Entries have no payloads and no secrets."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, user: str, action: str, subject: str = "", **facts: Any) -> None:
        """Adds an entry. `action` is a verb, and `subject` the thing that it concerns."""
        row = {"time": now(), "user": user, "action": action, "subject": subject, "facts": facts}
        self._database.execute(insert(AUDIT).values(row))

    def entries(
        self, *, limit: int = 100, before: int | None = None, subject: str | None = None
    ) -> list[dict[str, Any]]:
        """Returns entries, last first, before the entry of a number."""
        query = select(AUDIT).order_by(AUDIT.c.number.desc()).limit(limit)
        if before is not None:
            query = query.where(AUDIT.c.number < before)
        if subject is not None:
            query = query.where(AUDIT.c.subject == subject)
        return self._database.rows(query)
