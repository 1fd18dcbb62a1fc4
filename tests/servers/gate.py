"""A way to a server that can be shut or blocked while the server keeps what it has."""

from __future__ import annotations

import math
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Self


class Gate:
    """Passes on what comes to its port. While it is shut, or paused, nothing gets through.

    It takes at most `portion` bytes at a time, and rests for `rest` seconds after them.
    """

    def __init__(self, target: int, portion: int = 1 << 16, rest: float = 0.0) -> None:
        self._target, self._portion, self._rest = target, portion, rest
        self._listener: socket.socket | None = None
        self._open: set[socket.socket] = set()
        self._passes = threading.Event()
        self._passes.set()
        self._rejects = False
        self._lock = threading.Lock()
        self._left: float = math.inf
        self._then: Callable[[], None] = self.stop
        self.passed = 0
        """The bytes of both directions."""
        self.port = 0
        self.start()

    def start(self) -> None:
        """Opens it, at the same port as before."""
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=100)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def stop(self) -> None:
        """Closes all connections, and rejects new ones."""
        listener, self._listener = self._listener, None
        if listener is not None:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.drop()

    def drop(self) -> None:
        """Closes all connections."""
        for each in list(self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    kill = stop

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.heal()
        self.stop()

    def pause(self) -> None:
        """Accepts connections from now on, without a response."""
        self._passes.clear()

    def resume(self) -> None:
        """What was held is passed on."""
        self._passes.set()

    def reject(self) -> None:
        """Closes new connections, as a server does beyond its limit of connections."""
        self._rejects = True

    def after(self, count: int, action: Callable[[], None]) -> None:
        """Calls `stop`, `drop` or `pause` once `count` more bytes have passed."""
        with self._lock:
            self._left, self._then = count, action

    def heal(self) -> None:
        """Passes on everything again, also what was held."""
        with self._lock:
            self._left = math.inf
        self.resume()
        self._rejects = False
        if self._listener is None:
            self.start()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                if self._rejects:
                    near.close()
                    continue
                far = socket.create_connection(("127.0.0.1", self._target))
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        self._open.add(source)
        with suppress(OSError):
            while data := source.recv(self._portion):
                self._passes.wait()
                if rest := self._send(target, data):
                    self._passes.wait()
                    target.sendall(rest)
                time.sleep(self._rest)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)
        self._open.discard(source)

    def _send(self, target: socket.socket, data: bytes) -> bytes:
        """Sends what may pass, and returns the rest. No response passes before an action."""
        with self._lock:
            part = data[: int(min(self._left, len(data)))]
            is_last = len(part) == self._left
            self._left = math.inf if is_last else self._left - len(part)
            self.passed += len(part)
        if not is_last:
            target.sendall(part)
            return data[len(part) :]
        self._passes.clear()
        try:
            target.sendall(part)
        finally:
            self._then()
            if self._then != self.pause:
                self._passes.set()
        return data[len(part) :]
