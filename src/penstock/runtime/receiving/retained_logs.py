"""Warnings of logs that databases keep for sources of changes."""

from __future__ import annotations

from penstock.core.log import Log
from penstock.core.units import binary_size_text

FIRST_WARNING = 1 << 30
"""The size of a log at which the first warning is written."""


class RetainedLogs:
    """The logs of a run, with a warning at 1 GiB and at each further doubling."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._next: dict[str, int] = {}

    def observe(self, source: str, size: int) -> None:
        """Warns of a log that has grown. A log that became small may grow again."""
        if size < FIRST_WARNING:
            self._next.pop(source, None)
        elif size >= self._next.get(source, FIRST_WARNING):
            self._next[source] = 2 * size
            self._log.warning(
                "the database keeps a large log", source=source, size=binary_size_text(size),
                hint="End long transactions, and see whether sinks are slow or fail.",
            )  # fmt: skip
