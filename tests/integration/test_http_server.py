"""The responses of the HTTP source."""

from __future__ import annotations

import base64
import gzip
import json
import socket
import ssl
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Any

import pytest
from taking import Take, Taking

from penstock.connectors.http.config import HttpSourceConfig
from penstock.connectors.http.source import HttpSource
from penstock.sdk import Context, Transient
from servers.certificates import Authority
from servers.server import free_port

Ask = Callable[..., tuple[int, dict[str, str], Any]]


class Listening(Taking):
    """A server of ours, and those who send to it."""

    @property
    def port(self) -> int:
        return int(self.source.config.listen.rpartition(":")[2])

    def ask(
        self, body: bytes = b"", path: str = "/", method: str = "POST", **headers: str
    ) -> tuple[int, dict[str, str], Any]:
        """The status, the headers and the body of an answer."""
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=10)) as connection:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            text = answer.read()
            said = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, said, text

    def sent(self) -> list[bytes]:
        """The payloads that are there."""
        return [row["payload"] for row in self.there()]


@pytest.fixture
def listening(taking: Take, tmp_path: Path) -> Callable[..., Listening]:
    def listening(**options: Any) -> Listening:
        given = {"listen": f"127.0.0.1:{free_port()}", **options}
        config = HttpSourceConfig.model_validate(given)
        return taking(HttpSource(config, Context(state=tmp_path / "in")), Listening)

    return listening


def test_the_metadata_of_a_request(listening: Any) -> None:
    server = listening(path=["/rooms/{room}", "/all"], methods=["POST", "PUT"])
    assert (
        server.ask(b"one", "/rooms/a%20b?x=1&y=2", **{"X-Kind": "k", "Authorization": "no"})[0]
        == 200
    )
    assert server.ask(b"two", "/all", "PUT")[0] == 200
    one, two = server.there("path", "method", "parameters", "query", "headers", "received")
    assert (one["payload"], one["method"], one["path"]) == (b"one", "POST", "/rooms/a b")
    assert one["parameters"] == [("room", "a b")] and one["query"] == [("x", "1"), ("y", "2")]
    assert dict(one["headers"])["x-kind"] == "k" and "authorization" not in dict(one["headers"])
    assert one["received"] <= two["received"] and two["method"] == "PUT"


@pytest.mark.parametrize(
    ("options", "expected"), [({}, "blue"), ({"repeated_keys": "array"}, ["red", "blue"])]
)
def test_repeated_parameters_and_headers(
    listening: Any, options: dict[str, Any], expected: Any
) -> None:
    server = listening(**options)
    with socket.create_connection(("127.0.0.1", server.port), 10) as connection:
        headers = "Host: made-up\r\nX-Tag: red\r\nx-tag: blue\r\nContent-Length: 1\r\n"
        connection.sendall(f"POST /?tag=red&tag=blue HTTP/1.1\r\n{headers}\r\n1".encode())
        assert b" 200 " in connection.recv(1000)
    (row,) = server.there("query", "headers")
    assert row["query"] == [("tag", expected)]
    assert [value for name, value in row["headers"] if name == "x-tag"] == [expected]


def test_other_paths_and_methods_are_rejected(listening: Any) -> None:
    server = listening(path="/in")
    assert server.ask(b"1", "/other")[0] == 404
    status, headers, _ = server.ask(method="DELETE", path="/in")
    assert status == 405 and headers["allow"] == "POST"
    assert server.sent() == []


@pytest.mark.parametrize(
    ("auth", "right"),
    [
        ({"token": "made-up"}, "Bearer made-up"),
        ({"username": "u", "password": "p:w"}, "Basic " + base64.b64encode(b"u:p:w").decode()),
    ],
)
def test_authentication(listening: Any, auth: dict[str, str], right: str) -> None:
    server = listening(auth=auth)
    for wrong in ({}, {"Authorization": right + "x"}, {"Authorization": "Other made-up"}):
        status, headers, _ = server.ask(b"1", **wrong)
        assert status == 401 and headers["www-authenticate"].startswith(right.split()[0])
    assert server.ask(b"1", Authorization=right)[0] == 200
    assert server.sent() == [b"1"]


def test_lines(listening: Any) -> None:
    server = listening(framing="lines")
    status, _, said = server.ask(b'{"a":1}\r\n\n  \n{"a":2}')
    assert (status, json.loads(said)) == (200, {"received": 2})
    assert server.sent() == [b'{"a":1}', b'{"a":2}']


def test_the_elements_of_an_array_byte_for_byte(listening: Any) -> None:
    server = listening(framing="array")
    body = (
        ' [ {"n": 1.10, "t": "],[" } ,\n"\\u00e9,é" , 12345678901234567890 ,[1, 2],null ] '.encode()
    )
    assert server.ask(body)[0] == 200
    assert server.sent() == [
        b'{"n": 1.10, "t": "],[" }', '"\\u00e9,é"'.encode(), b"12345678901234567890", b"[1, 2]",
        b"null",
    ]  # fmt: skip
    assert server.ask(b"[]")[0] == 200


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[1", b"[1,]", b"[1 2]", b"[1] 2", b"[,1]", b"[\xff]"]
)
def test_a_body_without_an_array_is_rejected(listening: Any, body: bytes) -> None:
    server = listening(framing="array")
    status, _, said = server.ask(body)
    assert status == 400 and json.loads(said)["error"] == "expected a JSON array"
    assert server.sent() == []


def test_large_and_compressed_bodies(listening: Any) -> None:
    server = listening(max_message_size="10KB")
    assert server.ask(b"x" * 10_001)[0] == 413
    assert server.ask(gzip.compress(b"small"), **{"Content-Encoding": "gzip"})[0] == 200
    assert server.ask(gzip.compress(b"x" * 20_000), **{"Content-Encoding": "gzip"})[0] == 413
    assert server.sent() == [b"small"]


def test_a_full_journal_rejects_requests(listening: Any) -> None:
    server = listening(journal={"max_size": "1MiB"})
    answers = [server.ask(b"x" * 100_000)[0] for _ in range(20)]
    taken = answers.count(200)
    assert answers == [200] * taken + [503] * (20 - taken) and 5 < taken < 15
    status, headers, _ = server.ask(b"x")
    assert (status, headers["retry-after"]) == (503, "1")
    server.source.commit(server.source.latest_offset(server.source.initial_offset()))
    assert server.ask(b"x")[0] == 200


def test_a_page_of_another_origin(listening: Any) -> None:
    server = listening(cors=True, auth={"token": "made-up"})
    status, headers, _ = server.ask(
        method="OPTIONS", **{"Access-Control-Request-Headers": "authorization"}
    )
    assert status == 204 and headers["access-control-allow-headers"] == "authorization"
    status, headers, _ = server.ask(b"1", Authorization="Bearer made-up")
    assert status == 200 and headers["access-control-allow-origin"] == "*"


def test_an_address_in_use(listening: Any) -> None:
    server = listening()
    with pytest.raises(Transient, match="could not listen on"):
        server.source.check()


def test_a_server_with_a_certificate(listening: Any, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate = str(authority.issue("server"))
    server = listening(tls={"certificate": certificate, "key": certificate})
    trust = ssl.create_default_context(cafile=str(authority.root))
    with closing(HTTPSConnection("127.0.0.1", server.port, context=trust)) as connection:
        connection.request("POST", "/", b"1")
        assert connection.getresponse().status == 200
    assert server.sent() == [b"1"]
    with pytest.raises(ValueError, match="certificate and key"):
        HttpSourceConfig.model_validate({"listen": "localhost:1", "tls": {}})
