"""Tokens of AWS_MSK_IAM: whether Amazon's rules find the signature right, and whose keys sign."""

from __future__ import annotations

import hashlib
import hmac
import json
import pickle
import sys
from base64 import urlsafe_b64decode
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import pytest

from penstock.connectors.kafka import KafkaSink, KafkaSource
from penstock.connectors.kafka.client import Admin, consumer, producer
from penstock.connectors.kafka.connection import Sasl
from penstock.connectors.kafka.msk import Signer
from penstock.core.errors import MissingExtra, Permanent, Transient, report

REGION = "eu-west-1"
KEYS = {"access_key": "AKIDEXAMPLE", "secret_key": "wJalrXUtnFEMI/K7MDENG"}
SECRET = KEYS["secret_key"]


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No credentials are found anywhere."""
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN", "PROFILE"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def sasl(**options: Any) -> Sasl:
    return Sasl.model_validate({"mechanism": "AWS_MSK_IAM", "region": REGION, **options})


def asked(token: str) -> dict[str, str]:
    """The parameters of the call that a token is, once its address is right."""
    assert "=" not in token
    url = urlsplit(urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode())
    assert (url.scheme, url.netloc, url.path) == ("https", f"kafka.{REGION}.amazonaws.com", "/")
    return dict(parse_qsl(url.query, strict_parsing=True))


def signature(call: dict[str, str], secret: str) -> str:
    """Signature Version 4 of a call whose parameters say who signs, by Amazon's description."""
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


@pytest.mark.parametrize("more", [{}, {"session_token": "a/b+c=="}])
def test_amazon_finds_the_signature_right(more: dict[str, str]) -> None:
    token, until = Signer(sasl(**KEYS, **more))()
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
        "User-Agent": "penstock",
        **({"X-Amz-Security-Token": "a/b+c=="} if more else {}),
    }
    assert call["X-Amz-Signature"] != signature(call, "another")
    signed = datetime.strptime(date + "+0000", "%Y%m%dT%H%M%SZ%z")
    assert until == signed.timestamp() + 900 and until > datetime.now(UTC).timestamp() + 600


def test_credentials_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDOFENV")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of-env")
    found, given = asked(Signer(sasl())()[0]), asked(Signer(sasl(**KEYS))()[0])
    assert found["X-Amz-Credential"].startswith("AKIDOFENV/")
    assert found["X-Amz-Signature"] == signature(found, "of-env")
    assert given["X-Amz-Credential"].startswith("AKIDEXAMPLE/")


def test_credentials_that_end_are_renewed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keys by a program, which are always about to end, and so are asked for at each token."""
    asks, program = tmp_path / "asks", tmp_path / "keys"
    keys = {"Version": 1, "AccessKeyId": "AKID$n", "SecretAccessKey": "s", "SessionToken": "t"}
    soon = '"Expiration": "\'$(date -u -d "+20 seconds" +%Y-%m-%dT%H:%M:%SZ)\'"'
    told = json.dumps(keys)[:-1].replace("$n", "'$n'") + f", {soon}}}"
    program.write_text(f"#!/bin/sh\necho >> {asks}\nn=$(wc -l < {asks})\necho '{told}'\n")
    program.chmod(0o700)
    (tmp_path / "config").write_text(f"[default]\ncredential_process = {program}\n")
    signer = Signer(sasl())
    who = [asked(signer()[0])["X-Amz-Credential"].split("/")[0] for _ in range(3)]
    assert who[0] < who[1] < who[2] and who[0].startswith("AKID")


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({}, "no credentials"),
        ({"AWS_PROFILE": "nowhere"}, "nowhere"),
        ({"AWS_ACCESS_KEY_ID": "alone"}, "AWS_SECRET_ACCESS_KEY"),
    ],
)
def test_credentials_that_are_not_there(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], why: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    options = {"brokers": "127.0.0.1:9", "topic": "t", "tls": True, "sasl": sasl()}
    for component in (KafkaSource, KafkaSink):
        config = component.config_type.model_validate(options)
        component(config).examine()
        with pytest.raises(Permanent, match=why) as caught:
            pickle.loads(pickle.dumps(component(config))).check()
        assert caught.value.code == "authentication" and "access_key" in str(caught.value.hint)
    for make in (Admin, lambda config: consumer(config, {}), lambda config: producer(config, {})):
        with pytest.raises(Permanent, match=why):
            make(config)


def test_who_keeps_the_credentials_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:9/")
    monkeypatch.setattr("botocore.utils.ContainerMetadataFetcher.RETRY_ATTEMPTS", 1)
    with pytest.raises(Transient, match="could not get credentials"):
        Signer(sasl())()


def test_the_library_that_signs_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    options = {"brokers": "127.0.0.1:9", "topic": "t", "tls": True, "sasl": sasl(**KEYS)}
    config = KafkaSource.config_type.model_validate(options)
    for act in (KafkaSource(config).examine, KafkaSource(config).check):
        with pytest.raises(MissingExtra) as caught:
            act()
        assert "penstock[aws]" in report(caught.value)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"region": None}, "needs the region"),
        ({"username": "ann", "password": "x"}, "takes access_key"),
        ({"access_key": "a"}, "belong together"),
        ({"session_token": "a"}, "needs access_key"),
        ({"token_url": "http://x"}, "token_url is for mechanism: OAUTHBEARER"),
        ({"mechanism": "PLAIN", "username": "a", "password": "b"}, "region is for mechanism"),
        ({**KEYS, "mechanism": "OAUTHBEARER", "region": None}, "access_key is for mechanism"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        sasl(**options)


def test_tokens_are_not_sent_in_the_open() -> None:
    with pytest.raises(ValueError, match="needs tls: true"):
        KafkaSource.config_type.model_validate({"brokers": "b:1", "topic": "t", "sasl": sasl()})


def test_secrets_are_not_shown() -> None:
    assert SECRET not in repr(Signer(sasl(**KEYS, session_token="t0ken")))
