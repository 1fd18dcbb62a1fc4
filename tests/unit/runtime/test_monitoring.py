"""The HTTP server of a run: what it serves, and where."""

from __future__ import annotations

import json
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from socketserver import TCPServer
from urllib.parse import urlsplit

import pytest

from penstock import app
from penstock.app import RunOptions
from penstock.core.errors import Permanent, UserError
from penstock.core.log import Silent
from penstock.observe.execution import Execution
from penstock.runtime import monitoring as monitoring_module
from penstock.runtime.handle import RunHandle
from penstock.runtime.monitoring import LIMITS, monitoring, parse_listen

ANSWERS = ["/health", "/ready", "/live"]
PIPELINE = """\
name: shop
connections:
  broker: {brokers: "kafka:9092", auth: {mechanism: PLAIN, username: u, password: "hunter2"}}
sources:
  orders: {type: memory, rows: [{id: 1}]}
sinks:
  out: {type: files, from: orders, path: "out-hunter2", format: json}
"""


@pytest.fixture
def handle(tmp_path: Path) -> RunHandle:
    (tmp_path / "p.yaml").write_text(PIPELINE)
    handle = RunHandle(app.plan(tmp_path / "p.yaml"), Silent())
    for node in handle.plan.nodes.values():
        handle.metrics.flow(node.name, node.kind, node.type)
    return handle


class Client:
    def __init__(self, url: str) -> None:
        self.address = urlsplit(url).netloc

    def request(self, path: str, method: str = "GET") -> tuple[int, str]:
        connection = HTTPConnection(self.address, timeout=10)
        connection.request(method, path)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, text

    def ready(self) -> tuple[int, str | None]:
        status, text = self.request("/ready")
        return status, json.loads(text).get("reason")


@pytest.fixture
def client(handle: RunHandle) -> Iterator[Client]:
    with monitoring(handle, "0") as url:
        assert url.startswith("http://127.0.0.1:")
        yield Client(url)


@pytest.mark.slow
def test_a_run_is_ready_when_its_queries_have_started(handle: RunHandle, client: Client) -> None:
    assert client.ready() == (503, "starting")
    handle.metrics.all_started = True
    receiver = handle.metrics.receivers["in"] = Execution()
    assert client.ready() == (503, "starting")
    receiver.run()
    assert client.ready() == (200, None)
    handle.stop()
    assert client.ready() == (503, "stopping")
    handle.metrics.queries["out"] = Execution(state="failed", code="unavailable")
    assert client.ready() == (503, "failed")
    assert json.loads(client.request("/ready")[1])["failed"] == {"out": "unavailable"}


def test_health_and_metrics_are_served(handle: RunHandle, client: Client) -> None:
    status, text = client.request("/health")
    health = json.loads(text)
    assert (status, health["status"], health["run"]) == (200, "ok", handle.id)
    assert client.request("/health", "HEAD") == (200, "")
    assert client.request("/live")[0] == 200
    handle.metrics.flows["out"].add(3)
    status, text = client.request("/metrics")
    assert status == 200
    assert 'penstock_rows_total{kind="sink",node="out",pipeline="shop",type="files"} 3.0' in text
    assert "hunter2" not in text
    assert "python_info" not in text


@pytest.mark.slow
def test_other_paths_and_methods_are_errors(client: Client) -> None:
    status, text = client.request("/")
    assert (status, json.loads(text)) == (404, {"paths": ["/metrics", *ANSWERS]})
    assert client.request("/ready", "POST")[0] == 405
    assert client.request("/metrics", "POST")[0] == 405


@pytest.mark.slow
def test_slow_connections_are_limited_and_closed(
    handle: RunHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitoring_module, "CONNECTION_TIMEOUT", 1.0)
    monkeypatch.setattr(TCPServer, "request_queue_size", 200)
    with monitoring(handle, "0") as url, ExitStack() as stack:
        host, _, port = urlsplit(url).netloc.partition(":")
        opened = len([*Path("/proc/self/fd").iterdir()])
        slow = []
        for _ in range(200):
            connection = stack.enter_context(socket.create_connection((host, int(port)), 10))
            with suppress(OSError):
                connection.sendall(b"GET /health HTTP/1.1\r\n")
            slow.append(connection)
        poll = select.poll()
        poll.register(slow[-1], select.POLLIN)
        accepted, handled = 0, False
        while not handled:
            accepted = max(accepted, len([*Path("/proc/self/fd").iterdir()]) - opened - len(slow))
            handled = bool(poll.poll(5))
        # One more is accepted, and closed at once.
        assert 0 < accepted <= LIMITS.max_connections_per_address + 1
        for connection in slow:
            with suppress(ConnectionError):
                while connection.recv(1024):
                    pass
        while True:
            # The server counts a connection until it has closed it itself.
            with suppress(ConnectionError, HTTPException):
                assert Client(url).request("/health")[0] == 200
                break


@pytest.mark.slow
def test_the_address_is_free_after_the_run(handle: RunHandle) -> None:
    with monitoring(handle, "127.0.0.1:0") as url:
        address = urlsplit(url).netloc
    with monitoring(handle, address) as again:
        assert Client(again).request("/health")[0] == 200


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("9090", ("127.0.0.1", 9090)),
        ("0.0.0.0:0", ("0.0.0.0", 0)),
        ("[::1]:80", ("::1", 80)),
        ("localhost:80", ("localhost", 80)),
    ],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert parse_listen(text) == address


@pytest.mark.parametrize("text", ["", "host", ":9090", "host:", "::1:80", "1:65536", "a:b", "-1"])
def test_an_invalid_address_is_an_error(text: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_listen(text)
    assert caught.value.code == "invalid-address" and caught.value.hint


def test_a_taken_address_ends_the_run_before_its_start(handle: RunHandle) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Permanent, match=f"cannot listen on 127.0.0.1:{port}: address already"):
            app.run(handle.plan, options=RunOptions(listen=str(port)))
    assert not (handle.plan.state / "lock").exists()


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
def test_an_address_of_another_machine_is_an_error(handle: RunHandle, host: str) -> None:
    with pytest.raises(Permanent) as caught, monitoring(handle, f"{host}:0"):
        pass
    assert caught.value.code == "listen" and caught.value.hint
