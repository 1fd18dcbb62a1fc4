"""When sinks do what is due by the clock."""

from __future__ import annotations

import time

from penstock.core.log import Log
from penstock.plan.model import Plan, Query
from penstock.runtime.diagnose import diagnose

LEAST = 0.5
"""Seconds between two ticks of a sink, at least."""


class SinkClock:
    """Ticks the sinks of queries. What a sink fails at is told once, and tried again."""

    def __init__(self, plan: Plan, log: Log) -> None:
        self._plan, self._log = plan, log
        self._ticked: dict[str, float] = {}
        self._failing: set[str] = set()

    def look(self, query: Query) -> None:
        """To be called between two batches of the query, as often as one likes."""
        if time.monotonic() - self._ticked.get(query.name, -LEAST) < LEAST:
            return
        self._ticked[query.name] = time.monotonic()
        for name in query.sinks:
            try:
                self._plan.nodes[name].sink.tick()
            except Exception as error:
                self._failed(query, name, error)
            else:
                self._failing.discard(name)

    def _failed(self, query: Query, name: str, error: Exception) -> None:
        if name in self._failing:
            return
        self._failing.add(name)
        found = diagnose(self._plan, query, error)
        self._log.warning("overdue", sink=name, code=found.code, error=found.message)
