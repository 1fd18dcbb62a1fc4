from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

import pytest

from penstock.connectors.tcp import TcpSink, TcpSource
from penstock.sdk.messages.framing import LengthPrefixFraming, encode_frame, frame_decoder
from penstock.testing.contract import ReceivingContract, SinkContract
from servers.certificates import Authority
from servers.peer import Peer
from servers.server import free_port

PAUSED = "the operating system accepts connections of a paused process"
NO_ACKNOWLEDGEMENT = "TCP has no acknowledgement of received messages by the application"


class TestTcpSource(ReceivingContract):
    component = TcpSource
    lossy_reason = NO_ACKNOWLEDGEMENT
    transport = "listen"
    payload_kind: Any = "lines"
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
                connection.sendall(b"".join(encode_frame(each, framing) for each in payloads))

        return send


class TestTcpSourceOfLength(TestTcpSource):
    payload_kind = "bytes"
    framing = {"length": 4, "order": "little"}


class TestTcpSourceThatConnects(ReceivingContract):
    component = TcpSource
    transport = "connect"
    payload_kind = "lines"
    lossy_reason = NO_ACKNOWLEDGEMENT
    unsupported = {"test_check_of_paused_server_times_out": PAUSED}

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
    transport = "connect with TLS"
    unsupported = {}

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
    transport = "connect"
    unsupported = {"test_check_of_paused_server_times_out": PAUSED}

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
            server.clear()
            return self.decode([each for data in found for each in divided(data)], schema)

        yield rows
        server.clear()


class TestTcpSinkWithTls(TestTcpSink):
    transport = "connect with TLS"
    unsupported = {}

    @pytest.fixture
    def server(self, tls_peer: tuple[Peer, Path]) -> Peer:
        return tls_peer[0]

    @pytest.fixture
    def options(self, tls_peer: tuple[Peer, Path]) -> dict[str, Any]:
        peer, root = tls_peer
        tls = {"ca": str(root)}
        framing = {"length": 4}
        return {"connect": peer.address, "framing": framing, "timeout": "3s", "tls": tls}


class TestTcpSinkThatListens(SinkContract):
    component = TcpSink
    variant = "listen: 0.0.0.0:9000"
    transport = "listen"
    single_instance = True

    @pytest.fixture
    def address(self) -> str:
        return f"127.0.0.1:{free_port()}"

    @pytest.fixture
    def options(self, address: str) -> dict[str, Any]:
        return {"listen": address, "framing": {"length": 4}, "min_subscribers": 1}

    @pytest.fixture(autouse=True)
    def subscriber(self, address: str) -> Iterator[Subscriber]:
        with closing(Subscriber(address)) as subscriber:
            yield subscriber

    @pytest.fixture
    def rows(self, subscriber: Subscriber) -> Any:
        return lambda schema: self.decode(divided(subscriber.taken()), schema)


class Subscriber:
    """A client that reconnects while the sink listens, and collects the received bytes."""

    def __init__(self, address: str) -> None:
        host, port = address.split(":")
        self._address = host, int(port)
        self._data = b""
        self._busy, self._ended = Lock(), Event()
        self._connection: socket.socket | None = None
        self._thread = Thread(target=self._take, daemon=True)
        self._thread.start()

    def taken(self) -> bytes:
        """Returns the received bytes, after the sink has closed the connection."""
        until = time.monotonic() + 30
        while True:
            with self._busy:
                if self._connection is None:
                    return self._data
            assert time.monotonic() < until, "expected a closed connection, found an open one"
            time.sleep(0.01)

    def close(self) -> None:
        self._ended.set()
        self._thread.join()

    def _take(self) -> None:
        while not self._ended.wait(0.01):
            with self._busy, suppress(OSError):
                self._connection = socket.create_connection(self._address)
            if self._connection is not None:
                self._keep(self._connection)

    def _keep(self, connection: socket.socket) -> None:
        connection.settimeout(0.1)
        with connection, suppress(ConnectionResetError):
            while not self._ended.is_set():
                with suppress(TimeoutError):
                    data = connection.recv(1 << 20)
                    self._data += data
                    if not data:
                        break
        with self._busy:
            self._connection = None


def divided(data: bytes) -> list[bytes]:
    messages = frame_decoder(LengthPrefixFraming(length=4), 1 << 30)
    found = messages.feed(data)
    assert not messages.finish() and not messages.lost
    return found


@pytest.fixture(scope="module")
def tls_peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Peer, Path]]:
    """Yields a peer with TLS, and the file of its CA certificate."""
    authority = Authority(tmp_path_factory.mktemp("tls"))
    with Peer(certificate=authority.issue("peer")) as peer:
        yield peer, authority.root
