"""TCP server of the sink: sends every message to all connected subscribers."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable
from contextlib import suppress

from penstock.connectors.tcp.client import is_established
from penstock.connectors.tcp.config import TcpSinkConfig
from penstock.connectors.tcp.errors import open_error
from penstock.sdk import Transient

_POLL_SECONDS = 0.02
_BACKLOG = 1000


class BroadcastServer:
    """Listens for subscribers and sends to all of them. Raises Transient or Permanent."""

    def __init__(self, config: TcpSinkConfig) -> None:
        self._config = config
        self._ssl_context = config.ssl_context()
        self._subscribers: list[socket.socket] = []
        host, port = config.host_and_port
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        except OSError as error:
            raise open_error(config, error) from None
        self._listener.setblocking(False)

    def await_subscribers(self, count: int) -> None:
        """Returns once `count` subscribers are connected. Raises Transient after the timeout."""
        deadline = time.monotonic() + self._config.timeout
        while self.update_subscribers() < count:
            if time.monotonic() > deadline:
                raise Transient(
                    f"{len(self._subscribers)} of {count} subscribers are connected to "
                    f"{self._config.listen}",
                    code="no-subscribers",
                    hint="Start the subscribers, or lower min_subscribers.",
                )
            time.sleep(_POLL_SECONDS)

    def update_subscribers(self) -> int:
        """Accepts new subscribers and removes disconnected ones. Returns their number."""
        while (subscriber := self._accept()) is not None:
            self._subscribers.append(subscriber)
        for subscriber in [*self._subscribers]:
            if not is_established(subscriber):
                self._disconnect(subscriber)
        return len(self._subscribers)

    def send(self, frames: Iterable[bytes]) -> None:
        """Sends to all subscribers. Disconnects subscribers that exceed the write timeout."""
        data = b"".join(frames)
        for subscriber in [*self._subscribers]:
            try:
                subscriber.sendall(data)
            except OSError:
                self._disconnect(subscriber)

    def close(self) -> None:
        """Disconnects all subscribers and stops listening."""
        self._listener.close()
        for subscriber in [*self._subscribers]:
            self._disconnect(subscriber)

    def _accept(self) -> socket.socket | None:
        """Accepts one subscriber; None if none is waiting. Failed TLS handshakes are skipped."""
        with suppress(BlockingIOError):
            while True:
                subscriber, _ = self._listener.accept()
                subscriber.settimeout(self._config.timeout)
                with suppress(OSError):
                    if self._ssl_context is not None:
                        subscriber = self._ssl_context.wrap_socket(subscriber, server_side=True)
                    subscriber.settimeout(self._config.write_timeout)
                    return subscriber
                subscriber.close()
        return None

    def _disconnect(self, subscriber: socket.socket) -> None:
        self._subscribers.remove(subscriber)
        subscriber.close()
