"""The other end of ZeroMQ sockets: there is no broker between them."""

from __future__ import annotations

import threading
import time
from typing import Any, Self

SECONDS = 30
_CONTEXTS: list[Any] = []
"""All that were made: one that is collected as garbage may wait for ever."""


class End:
    """A socket of the tests' own, with options of its kind."""

    title = "libzmq 4.3, by pyzmq"

    def __init__(
        self, kind: str, *, bind: str | None = None, connect: str | None = None, topic: str = "",
        **options: Any,
    ) -> None:  # fmt: skip
        import zmq

        self.endpoint = bind or connect or ""
        self._context = zmq.Context()
        _CONTEXTS.append(self._context)
        self._kind = kind
        self.socket = self._context.socket(getattr(zmq, kind))
        self.socket.linger = 0 if kind in ("SUB", "PULL") else SECONDS * 1000
        self.socket.sndtimeo = SECONDS * 1000
        for name, value in options.items():
            setattr(self.socket, name, value)
        self._events = self.socket.get_monitor_socket()
        self._there = 0
        if kind == "XPUB":
            self.socket.xpub_nodrop = True
        if kind == "SUB":
            self.socket.subscribe(topic)
        if bind is not None:
            self.socket.bind(bind)
        else:
            self.socket.connect(connect)
        self._busy, self._ended = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self.socket.disable_monitor()
        self._events.close(0)
        self.socket.close()
        self._context.term()

    def send(self, *messages: list[bytes]) -> None:
        """Sends messages of several parts; who publishes waits for a subscription."""
        with self._busy:
            if self._kind == "XPUB" and not self._there:
                assert self.socket.poll(SECONDS * 1000), "no client has subscribed"
                self.socket.recv()
                self._there = 1
            for parts in messages:
                self.socket.send_multipart(parts)

    def take(self, count: int) -> list[list[bytes]]:
        """So many messages."""
        found: list[list[bytes]] = []
        with self._busy:
            while len(found) < count:
                assert self.socket.poll(SECONDS * 1000), f"{len(found)} of {count} came"
                found.append(self.socket.recv_multipart())
        return found

    def taken(self) -> list[list[bytes]]:
        """What came from those who have left by now; waits until all have."""
        from zmq import EVENT_ACCEPTED, EVENT_CONNECTED, EVENT_DISCONNECTED
        from zmq.utils.monitor import recv_monitor_message

        until = time.monotonic() + SECONDS
        found: list[list[bytes]] = []
        with self._busy:
            while self._events.poll(0) or self._there or self.socket.poll(0):
                assert time.monotonic() < until, "a connection is still open"
                while self.socket.poll(0):
                    found.append(self.socket.recv_multipart())
                if self._events.poll(10):
                    event = recv_monitor_message(self._events)["event"]
                    self._there += event in (EVENT_ACCEPTED, EVENT_CONNECTED)
                    self._there -= event == EVENT_DISCONNECTED
        return found

    def _look(self) -> None:
        """A bound socket says what it subscribes to when it is looked at."""
        while not self._ended.wait(0.01):
            with self._busy:
                self.socket.poll(0)
