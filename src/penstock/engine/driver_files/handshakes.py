"""Handshakes: connections whose peers have not proved yet that they have the key of the run."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress

_SECONDS = 10.0
"""The maximum time of a handshake."""
_COUNT = 128
"""The maximum number of handshakes at a time. Further connections wait."""


class Handshakes:
    """The handshakes in progress, the oldest first. Each of them has a thread."""

    def __init__(self, seconds: float = _SECONDS, count: int = _COUNT) -> None:
        self._seconds, self._count = seconds, count
        self._deadlines = dict[socket.socket, float]()
        self._changed = threading.Condition()

    def begin(self, peer: socket.socket) -> None:
        """Adds a connection."""
        with self._changed:
            self._deadlines[peer] = time.monotonic() + self._seconds

    def end(self, peer: socket.socket) -> None:
        """Removes a connection, whose time is no longer limited."""
        with self._changed:
            self._deadlines.pop(peer, None)
            self._changed.notify()

    def await_place(self) -> float | None:
        """Waits until another handshake may begin. Returns the seconds until the next deadline.

        Ends the connections whose time is over.
        """
        with self._changed:
            while True:
                left = self._end_late()
                if len(self._deadlines) < self._count:
                    return left
                self._changed.wait(left)

    def _end_late(self) -> float | None:
        """Ends late connections. Returns the seconds until the next deadline, if there is one."""
        now = time.monotonic()
        for peer, deadline in [*self._deadlines.items()]:
            if deadline > now:
                return deadline - now
            del self._deadlines[peer]
            with suppress(OSError):
                peer.shutdown(socket.SHUT_RDWR)
        return None
