"""Share links of the store: reading of one pipeline, or of one of its dead letters."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import delete, insert, select

from penstock.core.errors import UserError
from penstock.runtime.state.directory import now
from penstock.server.store.database import Database
from penstock.server.store.tables import SHARES, USERS


@dataclass(frozen=True)
class Share:
    """A link. `letter` is the ID of a dead letter; None for a link of the whole pipeline."""

    id: str
    pipeline: str
    letter: str | None
    author: str
    time: str
    expires: str


_COLUMNS = [SHARES.c[name] for name in Share.__dataclass_fields__]


class Shares:
    """The share links of a store, of which only hashes are stored."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(
        self, pipeline: str, letter: str | None, author: str, lifetime: timedelta
    ) -> tuple[Share, str]:
        """Returns a new link and its token."""
        token = secrets.token_urlsafe(32)
        expires = (datetime.now(UTC) + lifetime).strftime("%Y-%m-%dT%H:%M:%SZ")
        share = Share(secrets.token_hex(6), pipeline, letter, author, now(), expires)
        self._database.execute(delete(SHARES).where(SHARES.c.expires < now()))
        self._database.execute(insert(SHARES).values(**share.__dict__, hash=_digest(token)))
        return share, token

    def of_pipeline(self, pipeline: str) -> list[Share]:
        """Returns the links of a pipeline that have not expired, last first."""
        mine = (SHARES.c.pipeline == pipeline) & (SHARES.c.expires >= now())
        rows = self._database.rows(select(*_COLUMNS).where(mine).order_by(SHARES.c.time.desc()))
        return [Share(**row) for row in rows]

    def find(self, token: str) -> tuple[Share, frozenset[str]] | None:
        """Returns the link of a token and the rights of its author now; None without both."""
        row = self._database.first(
            select(*_COLUMNS, USERS.c.rights)
            .join(USERS, USERS.c.name == SHARES.c.author)
            .where((SHARES.c.hash == _digest(token)) & (SHARES.c.expires >= now()))
        )
        if row is None:
            return None
        rights: Any = row.pop("rights")
        return Share(**row), frozenset(rights)

    def revoke(self, pipeline: str, id: str) -> None:
        """Removes a link. Raises UserError for an unknown one."""
        mine = (SHARES.c.pipeline == pipeline) & (SHARES.c.id == id)
        if not self._database.execute(delete(SHARES).where(mine)):
            raise UserError("there is no such link", code="no-share")


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
