from __future__ import annotations

import time
from collections.abc import Callable
from http.client import HTTPConnection
from typing import Any

import pytest

from penstock.connectors.http import HttpSink, HttpSource
from penstock.testing.contract import ReceivingContract, SinkContract
from servers.server import free_port
from servers.web import PASSWORD, USER, Web


def post(port: int, body: bytes, path: str = "/", **headers: str) -> tuple[int, bytes]:
    """Sends a request. Returns status and body of the response."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("POST", path, body, headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


class TestHttpSource(ReceivingContract):
    component = HttpSource

    @pytest.fixture
    def port(self) -> int:
        return free_port()

    @pytest.fixture
    def options(self, port: int) -> dict[str, Any]:
        return {"listen": f"127.0.0.1:{port}"}

    @pytest.fixture
    def send(self, port: int) -> Callable[[list[bytes]], None]:
        """Returns `send`, which repeats each request until it succeeds."""

        def send(payloads: list[bytes]) -> None:
            for payload in payloads:
                until = time.monotonic() + 60
                while not self.accepted(port, payload):
                    assert time.monotonic() < until
                    time.sleep(0.02)

        return send

    def accepted(self, port: int, payload: bytes) -> bool:
        try:
            return post(port, payload)[0] == 200
        except OSError:
            return False


class TestHttpSourceLines(TestHttpSource):
    payload_kind = "lines"

    @pytest.fixture
    def options(self, port: int) -> dict[str, Any]:
        return {"listen": f"127.0.0.1:{port}", "framing": "lines"}


class TestHttpSourceArray(TestHttpSource):
    payload_kind = "rows"

    @pytest.fixture
    def options(self, port: int) -> dict[str, Any]:
        return {"listen": f"127.0.0.1:{port}", "framing": "array"}

    def accepted(self, port: int, payload: bytes) -> bool:
        if not payload.startswith(b"{"):
            payload = b'"%s"' % payload
        return super().accepted(port, b"[" + payload + b"]")


class TestHttpSink(SinkContract):
    component = HttpSink
    wrong_credentials = {"auth": {"username": USER, "password": "wrong"}}

    @pytest.fixture
    def server(self, web_server: Web) -> Web:
        return web_server

    @pytest.fixture
    def name(self, web_server: Web) -> str:
        return web_server.new_name()

    @pytest.fixture
    def options(self, web_server: Web, name: str) -> dict[str, Any]:
        return {
            "url": f"{web_server.url}/strict/{name}",
            "auth": {"username": USER, "password": PASSWORD},
            "retry": {"attempts": 2, "backoff": "100ms"},
            "timeout": "3s",
            "concurrency": 1,
        }

    @pytest.fixture
    def rows(self, web_server: Web, name: str) -> Any:
        return lambda schema: self.decode(self.payloads(web_server.bodies(name)), schema)

    def payloads(self, bodies: list[bytes]) -> list[bytes]:
        return bodies


class TestHttpSinkLines(TestHttpSink):
    payload_kind = "lines"
    wrong_credentials: dict[str, Any] = {}

    @pytest.fixture
    def options(self, web_server: Web, name: str) -> dict[str, Any]:
        return {"url": f"{web_server.url}/kept/{name}", "framing": "lines", "timeout": "3s"}

    def payloads(self, bodies: list[bytes]) -> list[bytes]:
        return [line for body in bodies for line in body.splitlines()]
