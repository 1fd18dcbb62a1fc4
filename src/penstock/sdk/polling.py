"""Sources that end, or are polled for new rows at an interval."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from time import monotonic
from typing import Any

from penstock.sdk.component import C
from penstock.sdk.replayable_source import ReplayableSource
from penstock.sdk.source import Offset


class PolledSource(ReplayableSource[C]):
    """A source that ends, or with an interval is polled for new rows."""

    _next_poll = 0.0

    def __getstate__(self) -> Mapping[str, Any]:
        return {**self.__dict__, "_next_poll": 0.0}

    @property
    @abstractmethod
    def poll_interval(self) -> float | None:
        """The seconds between two polls; None for a source that ends."""

    @abstractmethod
    def find_end(self, start: Offset) -> Offset:
        """Returns the end of the rows after `start` that can be read now."""

    def is_bounded(self) -> bool:
        return self.poll_interval is None

    def latest_offset(self, start: Offset) -> Offset:
        interval, now = self.poll_interval, monotonic()
        if interval is not None:
            if now < self._next_poll:
                return start
            self._next_poll = now + interval
        return self.find_end(start)
