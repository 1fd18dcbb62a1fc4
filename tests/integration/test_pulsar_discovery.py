"""The names of topics of Pulsar, by its admin API."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.core.errors import PenstockError, Permanent, PlanError, Transient
from penstock.discovery import topic_names
from servers.pulsar import BASIC, PASSWORD, Pulsar, token
from servers.server import free_port


def test_topics_of_pulsar(pulsar: Pulsar) -> None:
    plain, partitioned = pulsar.new_topic(), pulsar.new_topic(2)
    pulsar.send(partitioned, [b"x"])
    full = {f"persistent://public/default/{name}" for name in (plain, partitioned)}
    options = {**pulsar.login, "admin": {"url": pulsar.admin_url}}
    option, names = topic_names("pulsar", options)
    assert option == "topic" and full <= {*names}
    assert not [name for name in names if "-partition-" in name]
    one = {**options, "admin": {"url": pulsar.admin_url, "namespaces": ["public/default"]}}
    assert full <= {*topic_names("pulsar", one)[1]}
    none = {**options, "admin": {"url": pulsar.admin_url, "namespaces": ["public/other"]}}
    assert code_of("pulsar", none)[0] is Permanent


def test_errors_of_the_admin_api_of_pulsar(pulsar: Pulsar) -> None:
    admin = {"url": pulsar.admin_url}
    basic = {"username": BASIC, "password": PASSWORD}
    for auth in (None, {"token": token("other")}, basic, {**basic, "password": "wrong"}):
        options = {"url": pulsar.url, "auth": auth, "admin": admin}
        assert code_of("pulsar", options) == (Permanent, "authentication"), auth
    oauth2 = {"oauth2": {"issuer_url": "http://x", "client_id": "x", "client_secret": "x"}}
    without = {"url": pulsar.url}
    assert code_of("pulsar", without) == (PlanError, "no-topics")
    assert code_of("pulsar", {**without, "auth": oauth2, "admin": admin})[1] == "no-topics"
    closed = {**pulsar.login, "admin": {"url": f"http://127.0.0.1:{free_port()}"}}
    assert code_of("pulsar", closed) == (Transient, "unreachable")


def code_of(type_: str, options: dict[str, Any]) -> tuple[type, str]:
    with pytest.raises(PenstockError) as raised:
        topic_names(type_, options)
    return type(raised.value), raised.value.code
