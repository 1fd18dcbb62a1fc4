"""The ways to prove to NATS who we are, TLS, and several servers."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from penstock.connectors.nats import NatsSink
from penstock.sdk import Permanent, Transient
from servers.certificates import Authority
from servers.nats import PASSWORD, USER, Nats
from servers.nats_keys import Credentials, Key
from servers.server import free_port


def check(**options: Any) -> None:
    NatsSink(NatsSink.config_type.model_validate({"subject": "a", **options})).check()


def refused(**options: Any) -> str:
    with pytest.raises(Permanent) as caught:
        check(**options)
    return caught.value.code


def test_a_token() -> None:
    access = "authorization { token: made-up-token }"
    with Nats(access=access, token="made-up-token") as server:
        check(url=server.url, token="made-up-token")
        assert refused(url=server.url, token="wrong") == "login"
        assert refused(url=server.url) == "login"


def test_an_nkey() -> None:
    key = Key("user")
    access = f"authorization {{ users: [ {{ nkey: {key.public} }} ] }}"
    with Nats(access=access, nkeys_seed_str=key.seed) as server:
        check(url=server.url, nkey=key.seed)
        assert refused(url=server.url, nkey=Key("user").seed) == "login"
        assert refused(url=server.url, nkey="no seed") == "login"


def test_credentials(tmp_path: Path) -> None:
    given = Credentials(tmp_path)
    (tmp_path / "other").mkdir()
    with Nats(access=given.access, user_credentials=str(given.path)) as server:
        check(url=server.url, creds=str(given.path))
        other = Credentials(tmp_path / "other")
        assert refused(url=server.url, creds=str(other.path)) == "login"
        assert refused(url=server.url, creds=str(tmp_path / "missing")) == "login"


def test_a_jwt(tmp_path: Path) -> None:
    given = Credentials(tmp_path)
    with Nats(access=given.access, user_credentials=str(given.path)) as server:
        check(url=server.url, jwt=f"{given.token}\n", nkey=given.seed)
        assert refused(url=server.url, jwt=given.token, nkey=Key("user").seed) == "login"
        assert refused(url=server.url, jwt=Credentials(tmp_path).token, nkey=given.seed) == "login"
        assert refused(url=server.url, nkey=given.seed) == "login"


def test_encryption(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    trusting = ssl.create_default_context(cafile=str(authority.root))
    login = {"username": USER, "password": PASSWORD}
    given = {"user": USER, "password": PASSWORD, "tls": trusting}
    with Nats(certificate=authority.issue("server"), **given) as server:
        url = f"tls://127.0.0.1:{server.port}"
        check(url=url, tls={"ca": str(authority.root)}, **login)
        check(url=server.url, tls={"ca": str(authority.root)}, **login)
        check(url=url, tls={"verify": False}, **login)
        assert refused(url=url, **login) == "tls"


def test_a_server_that_does_not_encrypt(nats: Nats) -> None:
    login = {**nats.login, "url": f"tls://127.0.0.1:{nats.port}"}
    assert refused(**login) == "tls"


def test_one_of_several_servers_is_enough(nats: Nats) -> None:
    check(**{**nats.login, "url": [f"nats://127.0.0.1:{free_port()}", nats.url]})


@pytest.mark.parametrize(
    "options",
    [
        {"url": "http://localhost"},
        {"url": "nats://user:secret@localhost"},
        {"url": []},
        {"username": "u"},
        {"token": "t", "nkey": "n"},
        {"jwt": "j"},
        {"jwt": "j", "creds": "c"},
    ],
)
def test_options_that_do_not_fit(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        NatsSink.config_type.model_validate({"url": "nats://localhost", "subject": "a", **options})


def test_an_answer_that_takes_too_long(nats: Nats) -> None:
    sink = NatsSink(
        NatsSink.config_type.model_validate({**nats.login, "subject": "a", "timeout": "0.001ms"})
    )
    with pytest.raises(Transient) as caught:
        sink.check()
    assert caught.value.code == "unreachable"
