"""Authentication to NATS, TLS, and several servers."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from penstock.connectors.nats import NatsSink
from penstock.sdk import Permanent, Transient
from servers.certificates import Authority
from servers.nats import PASSWORD, USER, Nats
from servers.nats_keys import Credentials, Key
from servers.server import free_port


def check(**options: Any) -> None:
    NatsSink(NatsSink.config_type.model_validate({"subject": "a", **options})).check()


def error_code(**options: Any) -> str:
    with pytest.raises(Permanent) as caught:
        check(**options)
    return caught.value.code


def test_a_token() -> None:
    access = "authorization { token: made-up-token }"
    with Nats(access=access, token="made-up-token") as server:
        check(url=server.url, auth={"token": "made-up-token"})
        assert error_code(url=server.url, auth={"token": "wrong"}) == "authentication"
        assert error_code(url=server.url) == "authentication"


def test_an_nkey() -> None:
    key = Key("user")
    access = f"authorization {{ users: [ {{ nkey: {key.public} }} ] }}"
    with Nats(access=access, nkeys_seed_str=key.seed) as server:
        check(url=server.url, auth={"nkey": key.seed})
        assert error_code(url=server.url, auth={"nkey": Key("user").seed}) == "authentication"
        assert error_code(url=server.url, auth={"nkey": "invalid"}) == "authentication"


def test_credentials(tmp_path: Path) -> None:
    credentials = Credentials(tmp_path)
    (tmp_path / "other").mkdir()
    with Nats(access=credentials.access, user_credentials=str(credentials.path)) as server:
        check(url=server.url, auth={"creds": str(credentials.path)})
        other = Credentials(tmp_path / "other")
        assert error_code(url=server.url, auth={"creds": str(other.path)}) == "authentication"
        assert (
            error_code(url=server.url, auth={"creds": str(tmp_path / "missing")})
            == "authentication"
        )


def test_a_jwt(tmp_path: Path) -> None:
    credentials = Credentials(tmp_path)
    with Nats(access=credentials.access, user_credentials=str(credentials.path)) as server:
        check(url=server.url, auth={"jwt": f"{credentials.token}\n", "nkey": credentials.seed})
        assert (
            error_code(url=server.url, auth={"jwt": credentials.token, "nkey": Key("user").seed})
            == "authentication"
        )
        other = {"jwt": Credentials(tmp_path).token, "nkey": credentials.seed}
        assert error_code(url=server.url, auth=other) == "authentication"
        assert error_code(url=server.url, auth={"nkey": credentials.seed}) == "authentication"


def test_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    context = ssl.create_default_context(cafile=str(authority.root))
    login = {"auth": {"username": USER, "password": PASSWORD}}
    client = {"user": USER, "password": PASSWORD, "tls": context}
    with Nats(certificate=authority.issue("server"), **client) as server:
        url = f"tls://127.0.0.1:{server.port}"
        check(url=url, tls={"ca": str(authority.root)}, **login)
        check(url=server.url, tls={"ca": str(authority.root)}, **login)
        check(url=url, tls={"verify": False}, **login)
        check(url=server.url, tls={"ca": str(authority.root), "verify_hostname": False}, **login)
        assert error_code(url=url, **login) == "tls"
        assert error_code(url=server.url, **login) == "tls"
        other = {"url": url.replace("127.0.0.1", "127.1"), **login}
        assert error_code(**other, tls={"ca": str(authority.root)}) == "tls"


def test_a_server_without_tls(nats: Nats) -> None:
    url = f"tls://127.0.0.1:{nats.port}"
    assert error_code(**{**nats.login, "url": url}) == "tls"
    assert error_code(**nats.login, tls=True) == "tls"
    check(**nats.login, tls=False)


def test_one_of_several_servers_is_available(nats: Nats) -> None:
    check(**{**nats.login, "url": [f"nats://127.0.0.1:{free_port()}", nats.url]})


def test_a_response_timeout(nats: Nats) -> None:
    config = NatsSink.config_type.model_validate({**nats.login, "subject": "a"})
    sink = NatsSink(config.model_copy(update={"timeout": 1e-6}))
    with pytest.raises(Transient) as caught:
        sink.check()
    assert caught.value.code == "unreachable"
