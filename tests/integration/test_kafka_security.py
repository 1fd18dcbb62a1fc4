"""Kafka with passwords and certificates."""

from __future__ import annotations

import json
import time
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

import pytest
from kafka_records import Reading, rows, sink, source, write

from penstock.connectors.kafka import client
from penstock.connectors.kafka.client import Admin
from penstock.connectors.kafka.msk import TokenSigner
from penstock.core.error_report import format_error
from penstock.core.errors import ConnectError, Permanent
from penstock.sdk import Read
from servers.certificates import Authority
from servers.kafka import Kafka
from servers.kafka_security import PASSWORD, SESSION_SECONDS, USER, Listener

SECONDS_TO_NOTICE = 20
USERS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
MSK = {
    "auth": {
        "mechanism": "AWS_MSK_IAM", "region": "eu-west-1", "access_key": "AKIDEXAMPLE",
        "secret_key": "wrong",
    }
}  # fmt: skip


@pytest.fixture
def secure(kafka: Kafka) -> Listener:
    """A broker that asks for passwords over encrypted connections."""
    return kafka.over("sasl_ssl")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortens the time after which clients report a closed connection."""
    monkeypatch.setattr(client, "DISCONNECTED_TIMEOUT", 1.0)
    monkeypatch.setattr(client, "_ATTEMPT_TIMEOUT", 0.2)


def login(mechanism: str, password: str) -> dict[str, Any]:
    if mechanism != "OAUTHBEARER":
        return {"auth": {"mechanism": mechanism, "username": USER, "password": password}}
    return {
        "auth": {"mechanism": mechanism},
        "properties": {
            "enable.sasl.oauthbearer.unsecure.jwt": True,
            "sasl.oauthbearer.config": f"principal={USER} scope={password}",
        },
    }


def trust(broker: Listener) -> dict[str, Any]:
    return {"tls": {"ca": str(broker.authority.root)}}


def permanent_error(act: Any) -> Permanent:
    """Returns the permanent error of an action, which must be reported quickly."""
    began = time.monotonic()
    with pytest.raises(Permanent) as caught:
        act()
    assert time.monotonic() - began < SECONDS_TO_NOTICE
    assert caught.value.hint is not None
    assert "wrong" not in format_error(caught.value)
    return caught.value


@pytest.mark.parametrize("mechanism", [*USERS, "OAUTHBEARER"])
def test_logging_in(secure: Listener, mechanism: str) -> None:
    topic = secure.create_topic()
    options = {**trust(secure), **login(mechanism, PASSWORD)}
    source(secure, topic, **options).check()
    sink(secure, topic, **options).check()
    assert not write(sink(secure, topic, **options), [{"id": 1}])
    assert not write(sink(secure, topic, **options, delivery="exactly_once"), [{"id": 2}])
    reading = Reading(source(secure, topic, **options))
    assert reading.values() == [b'{"id":1}', b'{"id":2}']
    reading.source.commit(reading.at)
    assert rows(secure, topic) == [{"id": 1}, {"id": 2}]


@pytest.mark.parametrize("mechanism", [*USERS, "OAUTHBEARER"])
def test_wrong_passwords(secure: Listener, mechanism: str) -> None:
    topic = secure.create_topic()
    given = {**trust(secure), **login(mechanism, PASSWORD)}
    wrong = {**trust(secure), **login(mechanism, "wrong")}
    for act in (
        source(secure, topic, **wrong).check, source(secure, topic, **wrong).initial_offset,
        sink(secure, topic, **wrong).check,
        lambda: write(sink(secure, topic, **wrong), [{"id": 1}]),
    ):  # fmt: skip
        error = permanent_error(act)
        assert error.code == "authentication" and "auth" in (error.hint or "")
    reading = Reading(source(secure, topic, **given))
    write(sink(secure, topic, **given), [{"id": 1}])
    planned = reading.source.partitions(reading.at, reading.plan())
    reader = source(secure, topic, **wrong)
    assert permanent_error(lambda: list(reader.read(planned[0], Read()))).code == "authentication"


def test_a_token_signed_by_keys_fails_at_brokers_outside_amazon(secure: Listener) -> None:
    topic = secure.create_topic()
    options = {**trust(secure), **MSK}
    for act in (
        source(secure, topic, **options).check, sink(secure, topic, **options).check,
        lambda: write(sink(secure, topic, **options), [{"id": 1}]),
    ):  # fmt: skip
        error = permanent_error(act)
        assert error.code == "authentication" and "IAM" in (error.hint or "")
        assert "invalid_token" in error.message, "the broker has read it"


class Tokens:
    """Replaces the signer by tokens that the broker accepts; with `fails` it raises instead."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made = 0
        self.fails = False
        monkeypatch.setattr(TokenSigner, "__call__", self._make)

    def _make(self) -> tuple[str, float]:
        if self.fails:
            raise Permanent("no credentials any more", hint="get some")
        self.made += 1
        until = time.time() + SESSION_SECONDS
        claims = {"sub": USER, "scope": PASSWORD, "iat": time.time() - 1, "exp": until}
        parts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims))
        return ".".join(urlsafe_b64encode(part).decode().rstrip("=") for part in parts) + ".", until


def test_tokens_made_here(secure: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    """All clients have them and renew them: the broker ends connections that do not."""
    broker, topic, tokens = secure, secure.create_topic(), Tokens(monkeypatch)
    options = {**trust(broker), **MSK}
    assert not write(sink(broker, topic, **options), [{"id": 1}])
    assert not write(sink(broker, topic, **options, delivery="exactly_once"), [{"id": 2}])
    reading = Reading(source(broker, topic, **options))
    assert reading.values() == [b'{"id":1}', b'{"id":2}']
    reading.source.commit(reading.at)
    admin = Admin(reading.source.config)
    made = tokens.made
    ended = time.monotonic() + 1.5 * SESSION_SECONDS
    while time.monotonic() < ended:
        list_topics(admin)
    assert tokens.made > made
    assert not write(sink(broker, topic, **options), [{"id": 3}])
    assert reading.values() == [b'{"id":3}']
    tokens.fails = True
    error = permanent_error(lambda: [list_topics(admin) for _ in range(1000)])
    assert error.message == "no credentials any more", (
        "the error of the signer, not of the old token"
    )


def list_topics(admin: Admin) -> Any:
    time.sleep(0.02)
    return admin.request("look", lambda timeout: admin.client.list_topics(timeout=timeout))


@pytest.mark.parametrize("make", [source, sink])
def test_a_certificate_that_is_not_trusted(secure: Listener, make: Any, tmp_path: Path) -> None:
    topic = secure.create_topic()
    other = {"tls": {"ca": str(Authority(tmp_path, "Other").root)}}
    for tls in (other, {"tls": True}):
        error = permanent_error(make(secure, topic, **tls, **login("PLAIN", PASSWORD)).check)
        assert error.code == "tls" and "tls" in (error.hint or "")
    trusting = {"tls": {"verify": False, "verify_hostname": False}}
    make(secure, topic, **trusting, **login("PLAIN", PASSWORD)).check()


@pytest.mark.parametrize("make", [source, sink])
def test_a_file_of_certificates_that_is_missing(
    secure: Listener, make: Any, tmp_path: Path
) -> None:
    missing = {"tls": {"ca": str(tmp_path / "no.pem")}}
    error = permanent_error(make(secure, "t", **missing, **login("PLAIN", PASSWORD)).check)
    assert "no.pem" in format_error(error)


def test_a_certificate_of_the_client(kafka: Kafka) -> None:
    broker, topic = kafka.over("ssl"), kafka.create_topic()
    both = str(broker.certificate)
    with_it = {"tls": {**trust(broker)["tls"], "certificate": both, "key": both}}
    assert not write(sink(broker, topic, **with_it), [{"id": 1}])
    assert Reading(source(broker, topic, **with_it)).values() == [b'{"id":1}']
    permanent_error(source(broker, topic, **trust(broker)).check)


@pytest.mark.parametrize("make", [source, sink])
@pytest.mark.parametrize("options", [{}, {"tls": True}, login("PLAIN", PASSWORD)])
def test_another_protocol_than_the_broker_speaks(
    secure: Listener, make: Any, options: dict[str, Any]
) -> None:
    with pytest.raises(ConnectError) as caught:
        make(secure, "t", **options).check()
    assert "tls" in (caught.value.hint or "")
