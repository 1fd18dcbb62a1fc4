"""Rows of the store that were read a moment ago."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, TypeVar

from penstock.server.store.database import Database

KNOWN_SECONDS = 1.0
"""The time after which a change by another process has an effect."""
MAX_KNOWN = 1000
V = TypeVar("V")


class Known(Generic[V]):
    """Values by key, each until the next change by this process, at most for `KNOWN_SECONDS`.

    May be used from any thread.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._values: dict[str, tuple[int, float, V]] = {}

    def get(self, key: str) -> V | None:
        """Returns a value that is still known, or None. Does not wait."""
        found = self._values.get(key)
        if found is None:
            return None
        changes, until, value = found
        is_known = changes == self._database.changes and time.monotonic() < until
        return value if is_known else None

    def read(self, key: str, query: Callable[[], V | None]) -> V | None:
        """Returns a known value, or else that of a query, which is then known unless it is None."""
        known = self.get(key)
        if known is not None:
            return known
        changes = self._database.changes
        value = query()
        if value is not None:
            if len(self._values) >= MAX_KNOWN:
                self._values.clear()
            self._values[key] = changes, time.monotonic() + KNOWN_SECONDS, value
        return value
