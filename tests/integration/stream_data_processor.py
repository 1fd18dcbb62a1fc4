"""Publisher and subscriber of stream_data_processor, with its synchronized start."""

from __future__ import annotations

import threading
import time
from typing import Any, Self

SECONDS = 30
_CONNECT_INTERVAL = 1.0


class Side:
    """Sockets of a separate context, used by one thread at a time."""

    def __init__(self) -> None:
        import zmq

        self._context = zmq.Context()
        self._sockets: list[Any] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Returns once all messages are sent."""
        for socket in self._sockets:
            socket.close()
        self._context.term()

    def _socket(self, kind: str, **way: str) -> Any:
        import zmq

        socket = self._context.socket(getattr(zmq, kind))
        socket.linger = SECONDS * 1000
        socket.set_hwm(100_000)
        for name, endpoint in way.items():
            getattr(socket, name)(endpoint)
        self._sockets.append(socket)
        return socket


class Publisher(Side):
    """A PUB socket, and a REP socket for each subscriber, with or without replies."""

    def __init__(self, endpoint: str, *sync: str, replies: bool = True) -> None:
        super().__init__()
        self._pub = self._socket("PUB", bind=endpoint)
        self._missing = [self._socket("REP", bind=sync_endpoint) for sync_endpoint in sync]
        self._replies = replies

    def start(self) -> None:
        """Sends `connect` until all requests have arrived."""
        until, due = time.monotonic() + SECONDS, 0.0
        while self._missing:
            assert time.monotonic() < until, f"{len(self._missing)} requests are missing"
            if time.monotonic() >= due:
                self._pub.send(b"connect")
                due = time.monotonic() + _CONNECT_INTERVAL
            for rep in [*self._missing]:
                if rep.poll(10):
                    assert rep.recv_multipart() == [b""]
                    if self._replies:
                        rep.send(b"")
                    self._missing.remove(rep)

    def send(self, *payloads: bytes) -> None:
        for payload in payloads:
            self._pub.send(payload)

    def stop(self) -> None:
        """Sends `end` and closes the sockets."""
        self._pub.send(b"end")
        self.close()


class Subscriber(Side):
    """SUB and REQ sockets. Any first message causes the request and is dropped."""

    def __init__(self, endpoint: str, sync: str) -> None:
        super().__init__()
        self._sub = self._socket("SUB", connect=endpoint)
        self._sub.subscribe(b"")
        self._req = self._socket("REQ", connect=sync)
        self._req.linger = self._sub.linger = 0
        self.requested = False
        self.received: list[bytes] = []
        self.ended = threading.Event()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._receive, daemon=True)
        self._thread.start()

    def take(self, count: int) -> list[bytes]:
        """Returns the received messages once there are `count`."""
        until = time.monotonic() + SECONDS
        while len(self.received) < count:
            assert time.monotonic() < until, self.received
            time.sleep(0.01)
        return self.received

    def close(self) -> None:
        self._closed.set()
        self._thread.join()
        super().close()

    def _receive(self) -> None:
        while not self._closed.is_set() and not self.ended.is_set():
            if not self._sub.poll(20):
                continue
            message = self._sub.recv()
            if not self.requested:
                self.requested = True
                self._req.send(b"")
            elif message == b"end":
                self.ended.set()
            elif message != b"connect":
                self.received.append(message)
