"""Warnings of logs that databases retain for sources of changes."""

from __future__ import annotations

from penstock.core.log import Log
from penstock.core.units import binary_size_text
from penstock.sdk.retained_log import RetainedLog

FIRST_WARNING = 1 << 30
"""The size of a log at which the first warning is written."""
LARGE_SHARE, MIN_SECONDS = 0.75, 600
"""The share of a log, and its time at least, at which its end is near."""
_SLOW = "See whether sinks are slow or fail"


class RetainedLogs:
    """The logs of a run, with warnings of logs that grow, and of logs that end soon.

    The size is a warning at 1 GiB and at each further doubling.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._next: dict[str, int] = {}
        self._ending: set[str] = set()

    def observe(self, source: str, log: RetainedLog) -> None:
        """Warns of a log that has grown. A log that became small may grow again."""
        size, share = log.size or 0, log.share or 0.0
        if size < FIRST_WARNING:
            self._next.pop(source, None)
        elif size >= self._next.get(source, FIRST_WARNING):
            self._next[source] = 2 * size
            self._log.warning(
                "the database retains a large log", source=source, size=binary_size_text(size),
                hint=f"{_SLOW}, and end long transactions.",
            )  # fmt: skip
        if share < LARGE_SHARE or (log.seconds or 0) < MIN_SECONDS:
            self._ending.discard(source)
        elif source not in self._ending:
            self._ending.add(source)
            self._log.warning(
                "the database soon removes changes that were not read", source=source,
                behind=f"{log.seconds} s", hint=f"{_SLOW}, and keep the log for longer.",
            )  # fmt: skip
