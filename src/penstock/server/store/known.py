"""Rows of the store that were read a moment ago."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from sqlalchemy import Table

from penstock.server.store.database import Database

KNOWN_SECONDS = 10.0
"""The time after which a change by another process has an effect; only a server makes changes."""
MAX_KNOWN = 1000
V = TypeVar("V")


class Known(Generic[V]):
    """Values by key, each until the next change of its tables by this process.

    They are read again after some seconds. May be used from any thread.
    """

    def __init__(self, database: Database, *tables: Table, seconds: float = KNOWN_SECONDS) -> None:
        self._database, self._tables = database, tuple(table.name for table in tables)
        self._seconds = seconds
        self._values: dict[str, tuple[int, float, V]] = {}
        self._lock = threading.Lock()

    def get(self, key: str) -> V | None:
        """Returns a value that is still known, or None. Does not wait."""
        found = self._values.get(key)
        if found is None:
            return None
        changes, until, value = found
        is_known = changes == self._changes() and time.monotonic() < until
        return value if is_known else None

    def read(self, key: str, query: Callable[[], V | None]) -> V | None:
        """Returns a known value, or else that of a query, which is then known unless it is None.

        Several threads that read unknown values perform their queries one after the other.
        """
        known = self.get(key)
        if known is not None:
            return known
        with self._lock:
            known = self.get(key)
            if known is not None:
                return known
            changes = self._changes()
            value = query()
            if value is not None:
                if len(self._values) >= MAX_KNOWN:
                    self._values.clear()
                self._values[key] = changes, time.monotonic() + self._seconds, value
            return value

    def _changes(self) -> int:
        return self._database.changes_of(self._tables)
