"""The HTTP source and peers that do not finish: connections, headers and bodies."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from taking import Take, Taking, is_closed

from penstock.connectors.http import handler
from penstock.connectors.http.config import HttpSourceConfig
from penstock.connectors.http.source import HttpSource
from penstock.sdk import Context
from penstock.sdk.network.byte_budget import ByteBudget
from servers.server import free_port

SECONDS = 30
READ_AHEAD = 256 << 10
"""The bytes of a connection that the server reads before the handler."""
HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\n"


class Listening(Taking):
    """A running HTTP source."""

    def connect(self) -> socket.socket:
        """Opens a connection."""
        host, _, port = self.source.config.listen.rpartition(":")
        return socket.create_connection((host, int(port)), SECONDS)

    def request(self, data: bytes) -> bytes:
        """Returns the start of the response to raw bytes."""
        with self.connect() as connection:
            connection.sendall(data)
            return connection.recv(1000)


@pytest.fixture
def listening(taking: Take, tmp_path: Path) -> Callable[..., Listening]:
    def listening(**options: Any) -> Listening:
        listen = f"127.0.0.1:{free_port()}"
        config = HttpSourceConfig.model_validate({"listen": listen, **options})
        return taking(HttpSource(config, Context(state=tmp_path / "in")), Listening)

    return listening


def post(body: bytes) -> bytes:
    return HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body


@pytest.mark.parametrize("limit", ["max_connections", "max_connections_per_address"])
def test_connections_over_the_limit_are_closed(listening: Any, limit: str) -> None:
    server = listening(**{limit: 3})
    with ExitStack() as stack:
        connections = [stack.enter_context(server.connect()) for _ in range(3)]
        for connection in connections:
            connection.sendall(post(b"1"))
            assert b" 200 " in connection.recv(1000)
        for _ in range(5):
            with server.connect() as connection:
                assert is_closed(connection)
        connections[0].sendall(post(b"2"))
        assert b" 200 " in connections[0].recv(1000)
    assert len(server.there()) == 4


@pytest.mark.parametrize("start", [b"", b"POST / HT", HEAD, post(b"1")])
def test_idle_connections_are_closed(listening: Any, start: bytes) -> None:
    server = listening(idle_timeout="50ms")
    with server.connect() as connection:
        connection.sendall(start)
        received = b""
        while data := connection.recv(1000):
            received += data
    assert (b" 200 " in received) == (start == post(b"1"))


def test_an_incomplete_body_times_out(listening: Any) -> None:
    server = listening(timeout="50ms")
    assert b" 408 " in server.request(HEAD + b"Content-Length: 10\r\n\r\n12345")
    assert server.there() == []


def test_credentials_precede_the_body(listening: Any) -> None:
    server = listening(auth={"token": "made-up"})
    expect = HEAD + b"Content-Length: 10\r\nExpect: 100-continue\r\n"
    assert server.request(expect + b"\r\n").startswith(b"HTTP/1.1 401 ")
    login = b"Authorization: Bearer made-up\r\n\r\n"
    with server.connect() as connection:
        connection.sendall(expect + login)
        assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"0123456789")
        assert b" 200 " in connection.recv(1000)


def test_a_declared_size_over_the_bound_is_rejected_before_the_body(listening: Any) -> None:
    server = listening(max_message_size="1KB")
    assert b" 413 " in server.request(HEAD + b"Content-Length: 1001\r\n\r\n")


def test_bytes_in_flight_are_bounded(listening: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    size, limit = 200_000, 500_000

    class ObservedBudget(ByteBudget):
        max_used = 0

        def resize(self, share: Any, size: int) -> None:
            super().resize(share, size)
            self.max_used = max(self.max_used, self.used)

    budget = ObservedBudget(limit)
    monkeypatch.setattr(handler, "ByteBudget", lambda: budget)
    server = listening()
    with ExitStack() as stack, ThreadPoolExecutor(40) as pool:
        connections = [stack.enter_context(server.connect()) for _ in range(20)]
        for connection in connections:
            connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % (size + 1))
        sending = [pool.submit(connection.sendall, b"x" * size) for connection in connections]
        while budget.used < limit:
            time.sleep(0.001)
        for future, connection in zip(sending, connections, strict=True):
            pool.submit(_finish, future, connection)
        assert all(b" 200 " in connection.recv(1000) for connection in connections)
    assert len(server.there()) == 20 and budget.used == 0
    assert limit <= budget.max_used <= limit + size + 20 * READ_AHEAD


def _finish(sending: Future[None], connection: socket.socket) -> None:
    sending.result()
    connection.sendall(b"x")


@pytest.mark.parametrize("header", [b"X: " + b"x" * 20_000, b"X: 1\r\n" * 500 + b"Y: 1"])
def test_large_headers_are_rejected(listening: Any, header: bytes) -> None:
    server = listening()
    assert b" 400 " in server.request(HEAD + header + b"\r\n\r\n")
