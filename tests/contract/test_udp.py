from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any

import pytest

from penstock.connectors.udp import UdpSink, UdpSource
from penstock.testing.contract import ReceivingContract, SinkContract
from servers.server import free_port

LARGEST = 60_000
"""A datagram holds at most 65,507 bytes."""


class TestUdpSource(ReceivingContract):
    component = UdpSource
    lossy_reason = "UDP does not retransmit datagrams"
    max_payload_size = LARGEST

    @pytest.fixture
    def options(self) -> dict[str, Any]:
        return {"listen": f"127.0.0.1:{free_port()}"}

    @pytest.fixture
    def send(self, options: dict[str, Any]) -> Callable[[list[bytes]], None]:
        host, port = options["listen"].split(":")

        def send(payloads: list[bytes]) -> None:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
                for each in payloads:
                    sock.sendto(each, (host, int(port)))

        return send


class TestUdpSink(SinkContract):
    component = UdpSink
    max_payload_size = LARGEST

    @pytest.fixture
    def collected(self) -> Iterator[Collected]:
        collected = Collected()
        yield collected
        collected.close()

    @pytest.fixture
    def options(self, collected: Collected) -> dict[str, Any]:
        return {"connect": f"127.0.0.1:{collected.port}"}

    @pytest.fixture
    def rows(self, collected: Collected) -> Any:
        return lambda schema: self.decode(collected.datagrams(), schema)


class Collected:
    """A socket that collects datagrams."""

    def __init__(self) -> None:
        self._found: list[bytes] = []
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self._socket.bind(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._thread = Thread(target=self._collect, daemon=True)
        self._thread.start()

    def datagrams(self) -> list[bytes]:
        """Returns the received datagrams."""
        self._send(b"mark")
        until = time.monotonic() + 30
        while b"mark" not in self._found:
            assert time.monotonic() < until
            time.sleep(0.01)
        found = [each for each in self._found if each != b"mark"]
        self._found.clear()
        return found

    def close(self) -> None:
        self._send(b"end")
        self._thread.join()
        self._socket.close()

    def _send(self, data: bytes) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.sendto(data, ("127.0.0.1", self.port))

    def _collect(self) -> None:
        while (data := self._socket.recv(70_000)) != b"end":
            self._found.append(data)
