"""A registry that is down, does not answer, rejects the credentials, or is another server."""

from __future__ import annotations

import base64
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pyarrow as pa
import pytest
from registry_formats import ID, batch, failure_codes, formatted, payloads, record, written

from penstock.core.errors import MissingExtra, Permanent, Transient
from penstock.sdk.network.tls import Tls
from penstock.sdk.schema_registry import RegistryFormat
from servers.apicurio import PATH, Apicurio
from servers.certificates import Authority
from servers.gate import Gate

USER, PASSWORD, TOKEN = "made-up-user", "made-up-password", "made-up-token"
QUICK = {"timeout": "500ms"}


@pytest.fixture
def subject(apicurio: Apicurio) -> str:
    return apicurio.new_subject()


@pytest.fixture
def gate(apicurio: Apicurio) -> Iterator[Gate]:
    """A way to the registry that can be shut."""
    gate = Gate(apicurio.port)
    yield gate
    gate.stop()


@pytest.fixture
def guard(apicurio: Apicurio) -> Iterator[Callable[..., str]]:
    """`guard(context, host)` is the registry's URL for those who have the password or the token;

    with the context of a TLS server it begins with https.
    """
    known = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()

    class Guard(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(length) if length else None
            status, answer = 401, b'{"error_code": 401, "message": "who are you?"}'
            if self.headers.get("Authorization") in (f"Basic {known}", f"Bearer {TOKEN}"):
                status, answer = self._asked(body)
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def _asked(self, body: bytes | None) -> tuple[int, bytes]:
            headers = {"Content-Type": "application/json"}
            asked = Request(f"http://127.0.0.1:{apicurio.port}{self.path}", body, headers)
            try:
                with urlopen(asked, timeout=20) as answer:
                    return answer.status, answer.read()
            except HTTPError as error:
                return error.code, error.read()

        do_POST = do_GET

        def log_message(self, *_: Any) -> None: ...

    servers: list[ThreadingHTTPServer] = []

    def start(context: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> str:
        server = ThreadingHTTPServer((host, 0), Guard)
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"{'https' if context else 'http'}://{host}:{server.server_port}{PATH}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def through(gate: Gate) -> str:
    return f"http://127.0.0.1:{gate.port}{PATH}"


def test_a_registry_that_is_down(apicurio: Apicurio, subject: str, gate: Gate) -> None:
    found = written(apicurio, subject, record(), {"id": 1})
    format_ = formatted("avro", through(gate), subject)
    gate.stop()
    calls: list[Any] = [
        format_.check,
        lambda: format_.infer_schema(payloads()),
        lambda: format_.decode(payloads(*found), pa.schema([ID])),
        lambda: format_.encode(batch([{"id": 1}])),
    ]
    for call in calls:
        with pytest.raises(Transient) as caught:
            call()
        assert caught.value.code == "unreachable" and caught.value.hint
    gate.start()
    for call in calls:
        call()


def test_a_registry_that_does_not_answer(apicurio: Apicurio, subject: str, gate: Gate) -> None:
    found = written(apicurio, subject, record(), {"id": 1})
    gate.pause()
    format_ = formatted("avro", through(gate), subject, registry=QUICK)
    with pytest.raises(Transient, match="did not answer") as caught:
        format_.decode(payloads(*found), pa.schema([ID]))
    assert caught.value.code == "unreachable"
    gate.resume()


def test_cached_schemas_need_no_registry(apicurio: Apicurio, subject: str, gate: Gate) -> None:
    old, new = (
        written(apicurio, subject, record(*more), {"id": 1})
        for more in ((), ({"name": "n", "type": "int", "default": 7},))
    )
    format_ = formatted("avro", through(gate), subject)
    columns = format_.infer_schema(payloads())
    format_.decode(payloads(*old), columns)
    format_.encode(batch([{"id": 1}]))
    gate.stop()
    assert format_.decode(payloads(*old), columns).rows.num_rows == 1
    assert len(format_.encode(batch([{"id": 1}])).payloads) == 1
    with pytest.raises(Transient, match="did not answer") as caught:
        format_.decode(payloads(*old, *new), columns)
    assert caught.value.code == "unreachable"


def test_another_url_is_tried(apicurio: Apicurio, subject: str, gate: Gate) -> None:
    gate.stop()
    urls = [through(gate), apicurio.url]
    formatted("avro", "", subject, registry={"url": urls}).prepare(pa.schema([ID]))
    assert len(apicurio.schemas(subject)) == 1


@pytest.mark.parametrize(
    "who", [{"username": USER, "password": PASSWORD}, {"token": TOKEN}], ids=["user", "token"]
)
def test_authentication(guard: Callable[..., str], subject: str, who: dict[str, str]) -> None:
    guarded = guard()
    formatted("avro", guarded, subject, registry={"auth": who}).prepare(pa.schema([ID]))
    formatted("avro", guarded, subject, registry={"auth": who}).check()
    wrong = {name: f"wrong-{value}" for name, value in who.items()}
    for registry in ({}, {"auth": wrong}):
        with pytest.raises(Permanent) as caught:
            formatted("avro", guarded, subject, registry=registry).prepare(pa.schema([ID]))
        assert caught.value.code == "authentication" and caught.value.hint
    shown = repr(formatted("avro", guarded, subject, registry={"auth": who}).config)
    assert PASSWORD not in shown and TOKEN not in shown


def test_trusted_certificates(guard: Callable[..., str], subject: str, tmp_path: Path) -> None:
    ours, others = Authority(tmp_path), Authority(tmp_path, "Others")
    own = str(ours.issue("registry"))
    url = guard(Tls(certificate=own, key=own).server_context())
    for tls in ({"ca": str(ours.root)}, {"verify": False}):
        formatted("avro", url, subject, registry={"auth": {"token": TOKEN}, "tls": tls}).check()
    for tls in ({}, {"ca": str(others.root)}):
        with pytest.raises(Permanent) as caught:
            formatted("avro", url, subject, registry={"auth": {"token": TOKEN}, "tls": tls}).check()
        assert caught.value.code == "tls" and caught.value.hint


def test_a_name_that_the_certificate_does_not_have(
    guard: Callable[..., str], subject: str, tmp_path: Path
) -> None:
    ours = Authority(tmp_path)
    own = str(ours.issue("registry"))
    url = guard(Tls(certificate=own, key=own).server_context(), "127.0.0.2")
    registry: dict[str, Any] = {"auth": {"token": TOKEN}, "tls": {"ca": str(ours.root)}}
    with pytest.raises(Permanent) as caught:
        formatted("avro", url, subject, registry=registry).check()
    assert caught.value.code == "tls"
    registry["tls"]["verify_hostname"] = False
    formatted("avro", url, subject, registry=registry).check()


def test_a_registry_that_requires_a_client_certificate(
    guard: Callable[..., str], subject: str, tmp_path: Path
) -> None:
    ours = Authority(tmp_path)
    own, client = str(ours.issue("registry")), str(ours.issue("client"))
    url = guard(Tls(certificate=own, key=own, ca=str(ours.root)).server_context())
    trusted: dict[str, Any] = {"ca": str(ours.root)}
    shown = {**trusted, "certificate": client, "key": client}
    formatted("avro", url, subject, registry={"auth": {"token": TOKEN}, "tls": shown}).check()
    with pytest.raises(Transient) as caught:
        formatted("avro", url, subject, registry={"auth": {"token": TOKEN}, "tls": trusted}).check()
    assert caught.value.code == "unreachable"


def test_a_server_without_a_registry_makes_no_dead_letters(apicurio: Apicurio) -> None:
    format_ = formatted("avro", f"http://127.0.0.1:{apicurio.port}/elsewhere", None)
    with pytest.raises(Permanent, match="404"):
        format_.decode(payloads(b"\0\0\0\0\x01"), pa.schema([ID]))


def test_an_unknown_id(apicurio: Apicurio) -> None:
    format_ = formatted("avro", apicurio, None)
    found = format_.decode(payloads(b"\0\x7f\xff\xff\xff", b"\0\xff\xff\xff\xff"), pa.schema([ID]))
    assert failure_codes(found) == [(0, "unknown-schema"), (1, "not-framed")]


@pytest.mark.parametrize("kind", ["json", "protobuf"])
def test_a_schema_of_another_kind(apicurio: Apicurio, subject: str, kind: str) -> None:
    (found,) = written(apicurio, subject, record(), {"id": 0})
    decoded = formatted(kind, apicurio, None).decode(payloads(found), pa.schema([ID]))
    assert failure_codes(decoded) == [(0, "wrong-schema-type")]


def test_a_client_that_is_missing(apicurio: Apicurio, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RegistryFormat, "client_modules", ("no_such_module",))
    with pytest.raises(MissingExtra) as caught:
        formatted("avro", apicurio, None)
    assert caught.value.hint == "Run pip install 'penstock[registry]'."
