"""Timer of sinks: calls `Sink.tick` between batches."""

from __future__ import annotations

import time

from penstock.core.log import Log
from penstock.plan.model import Plan, Query
from penstock.runtime.diagnose import diagnose

MIN_INTERVAL = 0.5
"""The minimum seconds between two ticks of a sink."""


class SinkTimer:
    """A timer of sinks. The failure of a sink is logged once, and the sink is ticked again."""

    def __init__(self, plan: Plan, log: Log) -> None:
        self._plan, self._log = plan, log
        self._last_ticks: dict[str, float] = {}
        self._failing: set[str] = set()

    def tick(self, query: Query) -> None:
        """Ticks the sinks of a query if the interval is over. No batch may be under way."""
        if time.monotonic() - self._last_ticks.get(query.name, -MIN_INTERVAL) < MIN_INTERVAL:
            return
        self._last_ticks[query.name] = time.monotonic()
        for name in query.sinks:
            try:
                self._plan.nodes[name].sink.tick()
            except Exception as error:
                self._log_failure(query, name, error)
            else:
                self._failing.discard(name)

    def _log_failure(self, query: Query, name: str, error: Exception) -> None:
        if name in self._failing:
            return
        self._failing.add(name)
        cause = diagnose(self._plan, query, error)
        self._log.warning("tick failed", sink=name, code=cause.code, error=cause.message)
