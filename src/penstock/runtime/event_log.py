"""Log of a process with its last events, and with observers."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.core.log import Log
from penstock.runtime.state.directory import now

MAX_EVENTS = 1000


@dataclass(frozen=True)
class Event:
    """A log event of a run. `level` is debug, info, warning or error."""

    time: str
    level: str
    name: str
    facts: Mapping[str, Any]


class EventLog:
    """A log with the last events, for `RunHandle.events`. All events pass to another log.

    `observers` are called with each event.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self.observers: list[Callable[[Event], None]] = []
        self._events: deque[Event] = deque(maxlen=MAX_EVENTS)
        self._count = 0
        self._closed = False
        self._changed = threading.Condition()

    def debug(self, event: str, **facts: Any) -> None:
        self._log.debug(event, **facts)
        self._add("debug", event, facts)

    def info(self, event: str, **facts: Any) -> None:
        self._log.info(event, **facts)
        self._add("info", event, facts)

    def warning(self, event: str, **facts: Any) -> None:
        self._log.warning(event, **facts)
        self._add("warning", event, facts)

    def error(self, event: str, **facts: Any) -> None:
        self._log.error(event, **facts)
        self._add("error", event, facts)

    def close(self) -> None:
        """Ends all iterators after the events so far."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def follow(self) -> Iterator[Event]:
        """Yields the last events, then each new event until `close`."""
        index = self._count - len(self._events)
        while True:
            with self._changed:
                while index >= self._count and not self._closed:
                    self._changed.wait()
                first = self._count - len(self._events)
                batch = list(self._events)[max(index - first, 0) :]
                index = self._count
                closed = self._closed
            yield from batch
            if closed:
                return

    def _add(self, level: str, event: str, facts: Mapping[str, Any]) -> None:
        added = Event(now(), level, event, dict(facts))
        with self._changed:
            self._events.append(added)
            self._count += 1
            self._changed.notify_all()
        for observer in list(self.observers):
            observer(added)
