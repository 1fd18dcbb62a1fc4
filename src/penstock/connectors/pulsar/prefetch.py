"""The number of messages that a consumer or reader of a partition prefetches, by their sizes."""

from __future__ import annotations

from penstock.sdk.network.byte_budget import BYTES_IN_FLIGHT

MAX_PREFETCH = 200
_MAX_MESSAGE_BYTES = 5 << 20
"""The default limit of a broker for the size of a message."""
_STABLE_MESSAGES = 1000
"""The number of messages after which the number grows again."""


class Prefetch:
    """A number of messages whose size is at most `BYTES_IN_FLIGHT`, by the largest recent message.

    Pulsar's client bounds prefetched messages by their number only. The number begins as that of
    messages of the maximum size, and grows once as many smaller messages have arrived.
    """

    def __init__(self) -> None:
        self.count = BYTES_IN_FLIGHT // _MAX_MESSAGE_BYTES
        self._needed = self.count
        self._seen = self._largest = 0

    def observe(self, size: int) -> bool:
        """Adds the size of a received message. Returns whether `count` has changed."""
        self._seen += 1
        self._largest = max(self._largest, size, 1)
        fitting = max(1, min(MAX_PREFETCH, BYTES_IN_FLIGHT // self._largest))
        grows = fitting >= 2 * self.count and self._seen >= self._needed
        if not grows and fitting >= self.count:
            return False
        self.count, self._needed = fitting, _STABLE_MESSAGES
        self._seen = self._largest = 0
        return True
