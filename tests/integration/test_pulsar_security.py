"""Pulsar: authentication, TLS, and several brokers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from pydantic import ValidationError

from penstock.connectors.pulsar import PulsarSink, PulsarSource
from penstock.sdk import BatchId, Permanent, Transient
from servers.certificates import Authority
from servers.peer import Peer
from servers.pulsar import BASIC, PASSWORD, USER, Pulsar, token
from servers.server import free_port


def check(topic: str = "any", **options: Any) -> None:
    PulsarSink(PulsarSink.config_type.model_validate({"topic": topic, **options})).check()


def error_code(**options: Any) -> str:
    with pytest.raises(Permanent) as caught:
        check(**options)
    assert caught.value.hint
    return caught.value.code


def lookup(topic: str, **options: Any) -> None:
    """Looks up the broker of a topic, which `check` does not."""
    source = PulsarSource.create(
        PulsarSource.config_type.model_validate({"topic": topic, **options})
    )
    source.latest_offset(source.initial_offset())  # type: ignore[attr-defined]


def test_a_token(pulsar: Pulsar) -> None:
    check(url=pulsar.url, auth={"token": token()})
    assert error_code(url=pulsar.url, auth={"token": "wrong"}) == "authentication"
    assert error_code(url=pulsar.url) == "authentication"
    assert error_code(url=pulsar.url, auth={"token": token("nobody")}) == "authentication"


def test_a_name_and_a_password(pulsar: Pulsar) -> None:
    topic = pulsar.new_topic()
    basic = {"url": pulsar.url, "topic": topic}
    good, wrong = ({"username": BASIC, "password": each} for each in (PASSWORD, "wrong"))
    assert error_code(**basic, auth=good) == "authentication", "it may do nothing yet"
    path = f"persistent/public/default/{topic}/permissions/{BASIC}"
    pulsar.admin("POST", path, ["produce", "consume"])
    check(**basic, auth=good)
    assert error_code(**basic, auth=wrong) == "authentication"


def test_tls(pulsar: Pulsar, tmp_path: Path) -> None:
    options = {"url": pulsar.tls_url, "auth": {"token": token()}}
    trusted = {"ca": str(pulsar.authority.root)}
    topic = pulsar.new_topic()
    lookup(topic, **options, tls=trusted)
    assert error_code(**options) == "tls"
    assert error_code(**options, tls={"ca": str(Authority(tmp_path, "Others").root)}) == "tls"
    assert error_code(**options, tls={"ca": str(tmp_path / "nowhere")}) == "tls"
    lookup(topic, **options, tls={"verify": False})
    with pytest.raises(Transient):
        check(
            url=pulsar.url.replace("pulsar:", "pulsar+ssl:"), auth={"token": token()}, tls=trusted
        )


def test_a_hostname_mismatch(pulsar: Pulsar) -> None:
    options = {"url": pulsar.tls_url.replace("127.0.0.1", "127.1"), "auth": {"token": token()}}
    trusted = {"ca": str(pulsar.authority.root)}
    assert error_code(**options, tls=trusted) == "tls"
    lookup(pulsar.new_topic(), **options, tls={**trusted, "verify_hostname": False})


def test_tls_authentication(pulsar: Pulsar) -> None:
    def tls(name: str) -> dict[str, str]:
        key, certificate = pulsar.certificate(name)
        return {"ca": str(pulsar.authority.root), "key": str(key), "certificate": str(certificate)}

    lookup(pulsar.new_topic(), url=pulsar.tls_url, tls=tls(USER))
    assert error_code(url=pulsar.tls_url, tls=tls("nobody")) == "authentication"


@pytest.fixture
def issuer() -> Iterator[tuple[str, list[dict[str, list[str]]]]]:
    """The URL of an OAuth 2.0 issuer, and the requests that it received."""
    asked: list[dict[str, list[str]]] = []

    class Issuer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer({"token_endpoint": f"{url}/token"})

        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            asked.append(form)
            self.answer({"access_token": token(form["client_id"][0]), "expires_in": 3600})

        def answer(self, found: dict[str, Any]) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(found).encode())

        def log_message(self, *_: object) -> None:
            """Quietly."""

    with HTTPServer(("127.0.0.1", 0), Issuer) as server:
        url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield url, asked
        server.shutdown()


def test_oauth2_key_file(
    pulsar: Pulsar, issuer: tuple[str, list[dict[str, list[str]]]], tmp_path: Path
) -> None:
    url, asked = issuer
    (tmp_path / "keys.json").write_text(json.dumps({"client_id": USER, "client_secret": "made-up"}))
    oauth2 = {"issuer_url": url, "key_file": str(tmp_path / "keys.json")}
    lookup(
        pulsar.new_topic(),
        url=pulsar.url,
        auth={"oauth2": {**oauth2, "audience": "tests", "scope": "all"}},
    )
    request = asked[0]
    assert (request["client_id"], request["client_secret"]) == ([USER], ["made-up"])
    assert (request["audience"], request["scope"]) == (["tests"], ["all"])
    assert (
        error_code(url=pulsar.url, auth={"oauth2": {**oauth2, "key_file": "nowhere"}})
        == "authentication"
    )
    away = {**oauth2, "issuer_url": f"http://127.0.0.1:{free_port()}"}
    assert error_code(url=pulsar.url, auth={"oauth2": away}) == "authentication"


def test_oauth2_client_secret(
    pulsar: Pulsar, issuer: tuple[str, list[dict[str, list[str]]]]
) -> None:
    url, asked = issuer
    topic = pulsar.new_topic()
    for secret in ("made-up", "another"):
        oauth2 = {"issuer_url": url, "client_id": USER, "client_secret": secret}
        lookup(topic, url=pulsar.url, auth={"oauth2": oauth2})
        assert (asked[-1]["client_id"], asked[-1]["client_secret"]) == ([USER], [secret])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "expected key_file, or client_id"),
        (
            {"key_file": "f", "client_id": "i", "client_secret": "s"},
            "expected key_file, or client_id",
        ),
        ({"client_id": "i"}, "expected key_file, or client_id"),
    ],
)
def test_incomplete_credentials(given: dict[str, str], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        check(url="pulsar://nobody", auth={"oauth2": {"issuer_url": "http://nobody", **given}})


def test_several_brokers(pulsar: Pulsar) -> None:
    away = free_port()
    url = [f"pulsar://127.0.0.1:{away}", pulsar.url]
    lookup(pulsar.new_topic(), url=url, auth={"token": token()})
    with pytest.raises(Transient):
        check(url=f"pulsar://127.0.0.1:{away}", auth={"token": token()})


def test_an_unknown_listener(pulsar: Pulsar) -> None:
    topic = pulsar.new_topic()
    lookup(topic, **pulsar.login)
    with pytest.raises(Transient):
        lookup(topic, **pulsar.login, listener_name="nowhere", timeout="2s")


def test_a_server_with_another_protocol(peer: Peer) -> None:
    with pytest.raises(Transient) as caught:
        check(url=f"pulsar://{peer.address}", timeout="1s")
    assert caught.value.code == "unreachable"


def test_a_broker_stops_responding_during_a_write(pulsar: Pulsar) -> None:
    import pyarrow as pa

    options = {**pulsar.login, "topic": pulsar.new_topic(), "timeout": "2s"}
    sink = PulsarSink(PulsarSink.config_type.model_validate(options))
    rows = pa.RecordBatch.from_pylist([{"text": "1"}])
    payloads = rows.column("text").cast(pa.binary())
    client = sink.open()
    writer = sink.writer(client, BatchId("query-1", 0), 0, rows.schema)
    writer.write(rows, payloads)
    pulsar.pause()
    try:
        with pytest.raises(Transient):
            writer.write(rows, payloads)
    finally:
        pulsar.resume()
    assert not writer.write(rows, payloads)
    client.close()
