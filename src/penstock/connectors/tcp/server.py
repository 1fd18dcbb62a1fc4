"""TCP server of the sink: sends every message to all connected subscribers."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterable
from contextlib import suppress

from penstock.connectors.tcp.client import is_established
from penstock.connectors.tcp.config import TcpSinkConfig
from penstock.connectors.tcp.errors import open_error
from penstock.sdk import Transient
from penstock.sdk.network.connection_limits import ConnectionCounter

_POLL_SECONDS = 0.02
_BACKLOG = 1000
_AWAITED_HANDSHAKE_SECONDS = 1.0
"""The time for which a batch waits for the TLS handshake of a new subscriber."""


class BroadcastServer:
    """Listens for subscribers and sends to all of them. Raises Transient or Permanent."""

    def __init__(self, config: TcpSinkConfig) -> None:
        self._config = config
        self._ssl_context = config.ssl_context()
        self._connections = ConnectionCounter(config)
        self._addresses: dict[socket.socket, str] = {}
        self._handshakes: dict[ssl.SSLSocket, float] = {}
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
        self._accept()
        self._continue_handshakes()
        while any(map(self._is_awaited, self._handshakes.values())):
            time.sleep(_POLL_SECONDS)
            self._continue_handshakes()
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
        for connection in [*self._addresses]:
            self._disconnect(connection)

    def _accept(self) -> None:
        """Accepts all waiting connections. Closes those that exceed a limit."""
        with suppress(BlockingIOError):
            while True:
                connection, (address, *_) = self._listener.accept()
                if not self._connections.add((address,)):
                    connection.close()
                elif self._ssl_context is None:
                    self._addresses[connection] = address
                    self._subscribe(connection)
                else:
                    self._begin_handshake(connection, address, self._ssl_context)

    def _begin_handshake(
        self, connection: socket.socket, address: str, context: ssl.SSLContext
    ) -> None:
        connection.setblocking(False)
        try:
            wrapped = context.wrap_socket(
                connection, server_side=True, do_handshake_on_connect=False
            )
        except OSError:
            self._connections.remove((address,))
            connection.close()
        else:
            self._addresses[wrapped] = address
            self._handshakes[wrapped] = time.monotonic()

    def _is_awaited(self, start: float) -> bool:
        """Returns whether a batch waits for a handshake with this start."""
        return time.monotonic() < start + min(_AWAITED_HANDSHAKE_SECONDS, self._config.timeout)

    def _continue_handshakes(self) -> None:
        """Subscribes clients whose handshake is complete. Closes failed and slow connections."""
        for connection, start in [*self._handshakes.items()]:
            try:
                connection.do_handshake()
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                if time.monotonic() > start + self._config.timeout:
                    self._disconnect(connection)
            except OSError:
                self._disconnect(connection)
            else:
                del self._handshakes[connection]
                self._subscribe(connection)

    def _subscribe(self, connection: socket.socket) -> None:
        connection.settimeout(self._config.write_timeout)
        self._subscribers.append(connection)

    def _disconnect(self, connection: socket.socket) -> None:
        if connection in self._subscribers:
            self._subscribers.remove(connection)
        self._handshakes.pop(connection, None)  # type: ignore[call-overload]
        self._connections.remove((self._addresses.pop(connection),))
        connection.close()
