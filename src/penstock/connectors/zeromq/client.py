"""ZeroMQ sockets with a monitor of their connections."""

from __future__ import annotations

import time
import weakref
from typing import Any

from penstock.connectors.zeromq.config import CurveAuth, SocketConfig
from penstock.core.secret import revealed
from penstock.sdk import Permanent, Transient, report_retry

_POLL_MILLISECONDS = 20


class MonitoredSocket:
    """A socket of a type (`SUB`, `PUSH` ...), bound or connected, with options of that type.

    Raises Transient or Permanent.
    """

    def __init__(self, config: SocketConfig, kind: str, **options: Any) -> None:
        import zmq

        self._config = config
        self._context = zmq.Context()
        self.socket = self._context.socket(getattr(zmq, kind))
        self.socket.linger = 0
        self._monitor = self.socket.get_monitor_socket()
        weakref.finalize(self, _terminate, self._context, self.socket, self._monitor)
        self.socket.set_hwm(config.high_water_mark)
        for name, value in options.items():
            setattr(self.socket, name, value)
        self._handshakes, self._refused = 0, False
        try:
            if config.auth is not None:
                self._set_keys(config.auth)
            if config.listen is not None:
                self.socket.bind(config.listen)
            for endpoint in config.peers:
                self.socket.connect(endpoint)
        except zmq.ZMQError as error:
            self.close()
            raise self._open_error(error) from None

    def await_peers(self) -> None:
        """Returns once the handshake with each peer of `connect` has succeeded."""
        deadline = time.monotonic() + self._config.timeout
        while self._handshakes < len(self._config.peers):
            self.process_events(_POLL_MILLISECONDS)
            if time.monotonic() > deadline:
                raise self._unreachable("no handshake within timeout")
            if self._refused:
                report_retry(self._unreachable("no program accepts the connection"))

    def process_events(self, milliseconds: int = 0) -> None:
        """Processes connection events, and waits for the first one for `milliseconds`.

        Raises Transient when a connection to a peer of `connect` is lost, and Permanent when
        authentication fails.
        """
        import zmq
        from zmq.utils.monitor import recv_monitor_message

        while self._monitor.poll(milliseconds):
            event = recv_monitor_message(self._monitor)["event"]
            milliseconds = 0
            if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                self._handshakes += 1
            elif event == zmq.EVENT_CONNECT_RETRIED:
                self._refused = True
            elif event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
                raise Permanent(
                    f"authentication to {', '.join(self._config.peers)} failed",
                    code="authentication",
                    hint="Check the keys of auth.",
                )
            elif event == zmq.EVENT_DISCONNECTED and self._config.peers and self._handshakes:
                raise Transient(
                    f"the connection to {', '.join(self._config.peers)} was lost",
                    code="connection-lost",
                    hint="Check that the program at the endpoint is running.",
                )

    def close(self, linger: float = 0.0) -> bool:
        """Closes the socket. Returns whether all messages were sent within `linger` seconds."""
        start = time.monotonic()
        _terminate(self._context, self.socket, self._monitor, linger)
        return time.monotonic() - start < linger

    def _set_keys(self, auth: CurveAuth) -> None:
        self.socket.curve_publickey = (auth.public_key or "").encode()
        self.socket.curve_secretkey = (revealed(auth.secret_key) or "").encode()
        if self._config.listen is not None:
            self.socket.curve_server = True
        else:
            self.socket.curve_serverkey = (auth.server_key or "").encode()

    def _unreachable(self, reason: str) -> Transient:
        return Transient(
            f"could not reach {', '.join(self._config.peers)}: {reason}",
            code="unreachable",
            hint="Check that a program listens at the endpoint, and that both sides use auth or "
            "none does.",
        )

    def _open_error(self, error: Exception) -> Transient:
        if self._config.listen is not None:
            return Transient(
                f"could not listen at {self._config.listen}: {error}",
                code="listen",
                hint="Check that no other program listens at the endpoint, and its address.",
            )
        return Transient(
            f"could not connect to {', '.join(self._config.peers)}: {error}",
            code="unreachable",
            hint="Check the addresses of connect.",
        )


def _terminate(context: Any, socket: Any, monitor: Any, linger: float = 0.0) -> None:
    """Closes sockets before their context.

    The garbage collector may destroy the context first, which waits forever for open sockets.
    """
    if not socket.closed:
        socket.disable_monitor()
        monitor.close(0)
        socket.close(round(linger * 1000))
        context.term()
