"""The TCP source and hostile peers: connections, incomplete messages, bytes in flight."""

from __future__ import annotations

import asyncio
import resource
import socket
import ssl
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from taking import Take, Taking, is_closed

from penstock.connectors.tcp import TcpSink, TcpSource
from penstock.connectors.tcp.reader import ConnectionHandler
from penstock.connectors.tcp.server import BroadcastServer
from penstock.sdk import Context
from penstock.sdk.network.byte_budget import ByteBudget
from penstock.sdk.network.connection_limits import ConnectionCounter, ConnectionLimits
from servers.certificates import Authority
from servers.server import free_port

SECONDS = 30
LIMIT = 200_000
LINE = b"x" * 100_000


class Listening(Taking):
    """A running TCP source."""

    def connect(self) -> socket.socket:
        """Opens a connection."""
        host, _, port = self.source.config.listen.rpartition(":")
        return socket.create_connection((host, int(port)), SECONDS)


@pytest.fixture
def listening(taking: Take, tmp_path: Path) -> Callable[..., Listening]:
    def listening(**options: Any) -> Listening:
        listen = f"127.0.0.1:{free_port()}"
        config = TcpSource.config_type.model_validate({"listen": listen, **options})
        return taking(TcpSource(config, Context("t", "in", tmp_path / "in")), Listening)

    return listening


@pytest.mark.parametrize("limit", ["max_connections", "max_connections_per_address"])
def test_connections_over_the_limit_are_closed(listening: Any, limit: str) -> None:
    server = listening(**{limit: 2})
    with ExitStack() as stack:
        connections = [stack.enter_context(server.connect()) for _ in range(2)]
        for count, connection in enumerate(connections, 1):
            connection.sendall(b"1\n")
            server.rows(count)
        for _ in range(4):
            with server.connect() as connection:
                assert is_closed(connection)
        connections[0].sendall(b"2\n")
        assert server.payloads(3) == [b"1", b"1", b"2"]


def test_connections_leave_half_of_the_file_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (20, 20))
    counter = ConnectionCounter(ConnectionLimits())
    assert [counter.add((str(address), 1)) for address in range(12)] == [True] * 10 + [False] * 2
    counter.remove(("0", 1))
    assert counter.add(("0", 1))


@pytest.mark.parametrize("encrypted", [False, True])
def test_strangers_do_not_delay_subscribers(tmp_path: Path, encrypted: bool) -> None:
    authority, port = Authority(tmp_path), free_port()
    options: dict[str, Any] = {"listen": f"127.0.0.1:{port}", "max_connections": 20}
    if encrypted:
        certificate = str(authority.issue("ours"))
        options["tls"] = {"certificate": certificate, "key": certificate}
    server = BroadcastServer(TcpSink.config_type.model_validate(options))
    with closing(server), ExitStack() as stack:

        def connect() -> socket.socket:
            return stack.enter_context(socket.create_connection(("127.0.0.1", port), SECONDS))

        strangers = [connect() for _ in range(19)]
        subscriber = connect()
        if encrypted:
            context = ssl.create_default_context(cafile=str(authority.root))
            handshake = partial(context.wrap_socket, subscriber, server_hostname="127.0.0.1")
            with ThreadPoolExecutor() as pool:
                handshaken = pool.submit(handshake)
                assert server.update_subscribers() == 1
                subscriber = stack.enter_context(handshaken.result())
        excess = connect()
        server.update_subscribers()
        server.send([b"1\n"])
        assert subscriber.recv(100) == b"1\n"
        assert is_closed(excess)
        for connection in strangers:
            connection.close()
        deadline = time.monotonic() + SECONDS
        while server.update_subscribers() != 1:
            assert time.monotonic() < deadline
        connect()
        if not encrypted:
            assert server.update_subscribers() == 2


def test_an_incomplete_message_times_out(listening: Any) -> None:
    server = listening(idle_timeout="50ms")
    with server.connect() as idle, server.connect() as incomplete:
        incomplete.sendall(b"1\n2")
        assert is_closed(incomplete)
        idle.sendall(b"3\n")
        assert server.payloads(2) == [b"1", b"3"]
    assert server.source.lost() == 1


def test_bytes_in_flight_are_bounded(tmp_path: Path) -> None:
    config = TcpSource.config_type.model_validate({"listen": "127.0.0.1:0"})
    source = TcpSource(config, Context("t", "in", tmp_path / "in"))

    class ObservedBudget(ByteBudget):
        max_used = 0

        def resize(self, share: Any, size: int) -> None:
            super().resize(share, size)
            self.max_used = max(self.max_used, self.used)

    budget = ObservedBudget(LIMIT)

    async def send_lines() -> None:
        with source.journal() as journal:
            handler = ConnectionHandler(config, journal, budget)
            server = await asyncio.start_server(handler, "127.0.0.1", 0)
            host, port = server.sockets[0].getsockname()
            writers = [(await asyncio.open_connection(host, port))[1] for _ in range(20)]
            for writer in writers:
                writer.write(LINE)
            while budget.used < LIMIT:
                await asyncio.sleep(0)
            for writer in writers:
                writer.write(LINE + b"\n")
            async with asyncio.timeout(SECONDS):
                while journal.end < len(writers):
                    await asyncio.sleep(0)
            server.close()
            await handler.close()
            for writer in writers:
                writer.close()

    asyncio.run(send_lines())
    assert budget.used == 0
    assert LIMIT <= budget.max_used <= LIMIT + 2 * len(LINE) + 20 * (64 << 10)
