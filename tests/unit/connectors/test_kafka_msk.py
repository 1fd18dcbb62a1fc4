"""Tokens of AWS_MSK_IAM: the signature and the credentials."""

from __future__ import annotations

import gc
import hashlib
import hmac
import json
import pickle
import sys
from base64 import urlsafe_b64decode
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import pytest

from penstock.connectors.kafka import KafkaSink, KafkaSource
from penstock.connectors.kafka.auth import SaslAuth
from penstock.connectors.kafka.client import (
    Admin,
    _callbacks,
    create_consumer,
    create_producer,
)
from penstock.connectors.kafka.config import ConnectionConfig
from penstock.connectors.kafka.errors import ErrorTracker
from penstock.connectors.kafka.msk import TokenSigner
from penstock.core.error_report import format_error
from penstock.core.errors import MissingExtra, Permanent, Transient

REGION = "eu-west-1"
SIGNER = "aws-msk-iam-sasl-signer-python"
KEYS = {"access_key": "AKIDEXAMPLE", "secret_key": "wJalrXUtnFEMI/K7MDENG"}
SECRET = KEYS["secret_key"]


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Removes all credentials of the environment."""
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN", "PROFILE"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def auth(**options: Any) -> SaslAuth:
    return SaslAuth.model_validate({"mechanism": "AWS_MSK_IAM", "region": REGION, **options})


def asked(token: str) -> dict[str, str]:
    """Returns the parameters of the request that a token encodes."""
    assert "=" not in token
    url = urlsplit(urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode())
    assert (url.scheme, url.netloc, url.path) == ("https", f"kafka.{REGION}.amazonaws.com", "/")
    return dict(parse_qsl(url.query, strict_parsing=True))


def signature(call: dict[str, str], secret: str) -> str:
    """Returns the Signature Version 4 of a request, computed as AWS documents."""
    signed = {k: v for k, v in call.items() if k not in ("X-Amz-Signature", "User-Agent")}
    query = "&".join(f"{quote(k, '')}={quote(v, '')}" for k, v in sorted(signed.items()))
    host, nothing = f"host:kafka.{REGION}.amazonaws.com", hashlib.sha256(b"").hexdigest()
    request = "\n".join(["GET", "/", query, host, "", "host", nothing])
    scope = call["X-Amz-Credential"].split("/", 1)[1]
    digest = hashlib.sha256(request.encode()).hexdigest()
    text = "\n".join(["AWS4-HMAC-SHA256", call["X-Amz-Date"], scope, digest])
    key = f"AWS4{secret}".encode()
    for part in (*scope.split("/"), text):
        key = hmac.digest(key, part.encode(), "sha256")
    return key.hex()


@pytest.mark.quick(1)
@pytest.mark.parametrize("more", [{}, {"session_token": "a/b+c=="}])
def test_signature_version_4(more: dict[str, str]) -> None:
    token, until = TokenSigner(auth(**KEYS, **more))()
    call = asked(token)
    date = call["X-Amz-Date"]
    assert call == {
        "Action": "kafka-cluster:Connect",
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": f"AKIDEXAMPLE/{date[:8]}/{REGION}/kafka-cluster/aws4_request",
        "X-Amz-Date": date,
        "X-Amz-Expires": "900",
        "X-Amz-SignedHeaders": "host",
        "X-Amz-Signature": signature(call, SECRET),
        "User-Agent": f"{SIGNER}/{version(SIGNER)}",
        **({"X-Amz-Security-Token": "a/b+c=="} if more else {}),
    }
    assert call["X-Amz-Signature"] != signature(call, "another")
    signed = datetime.strptime(date + "+0000", "%Y%m%dT%H%M%SZ%z")
    assert until == signed.timestamp() + 900 and until > datetime.now(UTC).timestamp() + 600


def test_credentials_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDOFENV")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of-env")
    found, given = asked(TokenSigner(auth())()[0]), asked(TokenSigner(auth(**KEYS))()[0])
    assert found["X-Amz-Credential"].startswith("AKIDOFENV/")
    assert found["X-Amz-Signature"] == signature(found, "of-env")
    assert given["X-Amz-Credential"].startswith("AKIDEXAMPLE/")


def test_expired_credentials_are_refreshed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Credentials of a process that are about to expire are requested for each token."""
    asks, program = tmp_path / "asks", tmp_path / "keys"
    keys = {"Version": 1, "AccessKeyId": "AKID$n", "SecretAccessKey": "s", "SessionToken": "t"}
    soon = '"Expiration": "\'$(date -u -d "+20 seconds" +%Y-%m-%dT%H:%M:%SZ)\'"'
    answer = json.dumps(keys)[:-1].replace("$n", "'$n'") + f", {soon}}}"
    program.write_text(f"#!/bin/sh\necho >> {asks}\nn=$(wc -l < {asks})\necho '{answer}'\n")
    program.chmod(0o700)
    (tmp_path / "config").write_text(f"[default]\ncredential_process = {program}\n")
    signer = TokenSigner(auth())
    who = [asked(signer()[0])["X-Amz-Credential"].split("/")[0] for _ in range(3)]
    assert who[0] < who[1] < who[2] and who[0].startswith("AKID")


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({}, "are missing"),
        ({"AWS_PROFILE": "nowhere"}, "nowhere"),
        ({"AWS_ACCESS_KEY_ID": "alone"}, "AWS_SECRET_ACCESS_KEY"),
    ],
)
def test_missing_credentials(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], why: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    options = {"brokers": "127.0.0.1:9", "topic": "t", "tls": True, "auth": auth()}
    for component in (KafkaSource, KafkaSink):
        config = component.config_type.model_validate(options)
        component(config).validate()
        with pytest.raises(Permanent, match=why) as caught:
            pickle.loads(pickle.dumps(component(config))).check()
        assert caught.value.code == "authentication" and "access_key" in str(caught.value.hint)
    for make in (
        Admin,
        lambda config: create_consumer(config, {}),
        lambda config: create_producer(config, {}),
    ):
        with pytest.raises(Permanent, match=why):
            make(config)


@pytest.mark.slow
def test_credential_provider_does_not_respond(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:9/")
    monkeypatch.setattr("botocore.utils.ContainerMetadataFetcher.RETRY_ATTEMPTS", 1)
    with pytest.raises(Transient, match="could not load credentials"):
        TokenSigner(auth())()


def test_missing_signer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)
    options = {"brokers": "127.0.0.1:9", "topic": "t", "tls": True, "auth": auth(**KEYS)}
    config = KafkaSource.config_type.model_validate(options)
    for act in (KafkaSource(config).validate, KafkaSource(config).check):
        with pytest.raises(MissingExtra) as caught:
            act()
        assert "penstock[kafka]" in format_error(caught.value)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"region": None}, "requires region"),
        ({"username": "ann", "password": "x"}, "is not supported by mechanism AWS_MSK_IAM"),
        ({"access_key": "a"}, "requires access_key and secret_key"),
        ({"session_token": "a"}, "requires access_key and secret_key"),
        ({"token_url": "http://x"}, "token_url is not supported by mechanism AWS_MSK_IAM"),
        ({"mechanism": "PLAIN", "username": "a", "password": "b"}, "region is not supported"),
        ({**KEYS, "mechanism": "OAUTHBEARER", "region": None}, "access_key is not supported"),
    ],
)
def test_contradictory_options(options: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        auth(**options)


def test_tokens_require_tls() -> None:
    with pytest.raises(ValueError, match="requires tls: true"):
        KafkaSource.config_type.model_validate({"brokers": "b:1", "topic": "t", "auth": auth()})


def test_secrets_are_not_shown() -> None:
    assert SECRET not in repr(TokenSigner(auth(**KEYS, session_token="t0ken")))


def test_a_token_callback_pauses_garbage_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    """A collection on a thread of librdkafka could free a client, which aborts the process."""
    seen: list[bool] = []

    def sign(self: TokenSigner) -> tuple[str, float]:
        seen.append(gc.isenabled())
        return "token", 0.0

    monkeypatch.setattr(TokenSigner, "__call__", sign)
    auth = {
        "mechanism": "AWS_MSK_IAM", "region": "eu-west-1", "access_key": "a", "secret_key": "b",
    }  # fmt: skip
    config = ConnectionConfig.model_validate({"brokers": "localhost:1", "tls": True, "auth": auth})
    _callbacks(config, ErrorTracker("localhost:1"))["oauth_cb"]("")
    assert seen[-1] is False and gc.isenabled()
