"""The two sides of a start in step, as programs of stream_data_processor play them."""

from __future__ import annotations

import threading
import time
from typing import Any, Self

SECONDS = 30
_CALLS = 1.0


class Side:
    """Sockets of a context of their own, used by one thread at a time."""

    def __init__(self) -> None:
        import zmq

        self._context = zmq.Context()
        self._sockets: list[Any] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Returns when all is sent."""
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
    """PUB, and a REP for each subscriber; `replies` or not."""

    def __init__(self, endpoint: str, *sync: str, replies: bool = True) -> None:
        super().__init__()
        self._pub = self._socket("PUB", bind=endpoint)
        self._missing = [self._socket("REP", bind=each) for each in sync]
        self._replies = replies

    def start(self) -> None:
        """Calls until all have asked."""
        until, due = time.monotonic() + SECONDS, 0.0
        while self._missing:
            assert time.monotonic() < until, "nobody asks"
            if time.monotonic() >= due:
                self._pub.send(b"connect")
                due = time.monotonic() + _CALLS
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
        """The end, after which nobody is there."""
        self._pub.send(b"end")
        self.close()


class Subscriber(Side):
    """SUB and REQ. The first message makes it ask, whatever it is, and goes no further."""

    def __init__(self, endpoint: str, sync: str) -> None:
        super().__init__()
        self._sub = self._socket("SUB", connect=endpoint)
        self._sub.subscribe(b"")
        self._req = self._socket("REQ", connect=sync)
        self._req.linger = self._sub.linger = 0
        self.asked = False
        self.got: list[bytes] = []
        self.ended = threading.Event()
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._take, daemon=True)
        self._thread.start()

    def take(self, count: int) -> list[bytes]:
        """What came, once it is so much."""
        until = time.monotonic() + SECONDS
        while len(self.got) < count:
            assert time.monotonic() < until, self.got
            time.sleep(0.01)
        return self.got

    def close(self) -> None:
        self._left.set()
        self._thread.join()
        super().close()

    def _take(self) -> None:
        while not self._left.is_set() and not self.ended.is_set():
            if not self._sub.poll(20):
                continue
            message = self._sub.recv()
            if not self.asked:
                self.asked = True
                self._req.send(b"")
            elif message == b"end":
                self.ended.set()
            elif message != b"connect":
                self.got.append(message)
