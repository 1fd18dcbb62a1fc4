from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.connectors.tcp import TcpSink, TcpSource
from penstock.sdk.kit.framing import Prefixed, divider, framed
from penstock.testing.contract import ReceivingContract, SinkContract
from servers.certificates import Authority
from servers.peer import Peer
from servers.server import free_port

SILENT = "the system of a paused program still takes connections"
NOT_TOLD = "TCP tells a sender nothing of what became of its messages"


class TestTcpSource(ReceivingContract):
    component = TcpSource
    forgets = NOT_TOLD
    framing: Any = "lines"

    @pytest.fixture
    def options(self) -> dict[str, Any]:
        return {"listen": f"127.0.0.1:{free_port()}", "framing": self.framing}

    @pytest.fixture
    def send(self, options: dict[str, Any]) -> Callable[[list[bytes]], None]:
        framing = TcpSource.config_type.model_validate(options).framing
        host, port = options["listen"].split(":")

        def send(payloads: list[bytes]) -> None:
            with socket.create_connection((host, int(port)), 10) as connection:
                connection.settimeout(60)
                connection.sendall(b"".join(framed(each, framing) for each in payloads))

        return send


class TestTcpSourceOfLength(TestTcpSource):
    framing = {"length": 4, "order": "little"}


class TestTcpSourceThatConnects(ReceivingContract):
    component = TcpSource
    forgets = NOT_TOLD
    never = {"test_a_server_that_does_not_answer_is_given_up": SILENT}

    @pytest.fixture
    def server(self, peer: Peer) -> Peer:
        return peer

    @pytest.fixture
    def options(self, server: Peer) -> dict[str, Any]:
        return {"connect": server.giving_address, "timeout": "3s"}

    @pytest.fixture
    def send(self, server: Peer) -> Callable[[list[bytes]], None]:
        return lambda payloads: server.give(*(each + b"\n" for each in payloads))


class TestTcpSourceThatConnectsWithTls(TestTcpSourceThatConnects):
    whole = True
    never = {}

    @pytest.fixture
    def server(self, tls_peer: tuple[Peer, Path]) -> Peer:
        return tls_peer[0]

    @pytest.fixture
    def options(self, tls_peer: tuple[Peer, Path]) -> dict[str, Any]:
        peer, root = tls_peer
        return {"connect": peer.giving_address, "timeout": "3s", "tls": {"ca": str(root)}}


class TestTcpSink(SinkContract):
    component = TcpSink
    variant = "connect: collector.example.com:9000"
    never = {"test_a_server_that_does_not_answer_is_given_up": SILENT}

    @pytest.fixture
    def server(self, peer: Peer) -> Peer:
        return peer

    @pytest.fixture
    def options(self, server: Peer) -> dict[str, Any]:
        return {"connect": server.address, "framing": {"length": 4}, "timeout": "3s"}

    @pytest.fixture
    def rows(self, server: Peer) -> Iterator[Any]:
        def rows(schema: Any) -> Any:
            found = server.kept()
            server.forget()
            return self.decoded([each for data in found for each in divided(data)], schema)

        yield rows
        server.forget()


class TestTcpSinkWithTls(TestTcpSink):
    whole = True
    never = {}

    @pytest.fixture
    def server(self, tls_peer: tuple[Peer, Path]) -> Peer:
        return tls_peer[0]

    @pytest.fixture
    def options(self, tls_peer: tuple[Peer, Path]) -> dict[str, Any]:
        peer, root = tls_peer
        tls = {"ca": str(root)}
        framing = {"length": 4}
        return {"connect": peer.address, "framing": framing, "timeout": "3s", "tls": tls}


def divided(data: bytes) -> list[bytes]:
    messages = divider(Prefixed(length=4), 1 << 30)
    found = messages.divided(data)
    assert not messages.ended() and not messages.lost
    return found


@pytest.fixture(scope="module")
def tls_peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Peer, Path]]:
    """A peer with TLS, and the file of the authority that it is trusted by."""
    authority = Authority(tmp_path_factory.mktemp("tls"))
    with Peer(certificate=authority.issue("peer")) as peer:
        yield peer, authority.root
