"""Invalid options of the ZeroMQ source and sink."""

from __future__ import annotations

from typing import Any

import pytest

from option_errors import Case, assert_option_error
from penstock.connectors.zeromq import ZeromqSink, ZeromqSource

AT, SYNC, OTHER = "tcp://a:1", "tcp://a:2", "tcp://a:3"
DISTINCT = "sync requires a distinct endpoint for each subscriber"
KEY = "x" * 40


@pytest.mark.parametrize("component", [ZeromqSource, ZeromqSink])
@pytest.mark.parametrize(
    "case",
    [
        ({}, "listen", "expected either listen or connect"),
        ({"listen": AT, "connect": AT}, "connect", "expected either listen or connect"),
        ({"listen": "a:1"}, "listen", "expected tcp://HOST:PORT or ipc://FILE"),
        ({"connect": AT, "timeout": "0s"}, "timeout", "a duration of at least 1ms"),
        ({"listen": AT, "auth": {"public_key": KEY}}, "auth", "public_key and secret_key"),
        (
            {"connect": AT, "auth": {"public_key": KEY, "secret_key": "y"}},
            "auth.server_key",
            "connect with auth requires auth.server_key",
        ),
        (
            {"listen": AT, "auth": {"public_key": "x", "secret_key": "y"}},
            "auth.public_key",
            "expected a key of 40 characters",
        ),
    ],
)
def test_invalid_options(component: Any, case: Case) -> None:
    assert_option_error(component.config_type, {}, case)


@pytest.mark.parametrize(
    "case",
    [
        ({"connect": AT}, "sync", "sync requires socket: pub and listen"),
        ({"listen": AT, "socket": "push"}, "socket", "sync requires socket: pub and listen"),
        ({"listen": AT, "topic": "t"}, "topic", "sync excludes topic"),
        ({"listen": AT, "min_subscribers": 1}, "min_subscribers", "sync excludes min_subscribers"),
        ({"listen": SYNC}, "sync", DISTINCT),
        ({"listen": AT, "sync": [SYNC, SYNC]}, "sync", DISTINCT),
        ({"listen": AT, "sync": []}, "sync", DISTINCT),
        ({"listen": AT, "sync": "inproc://a"}, "sync", "expected tcp://HOST:PORT"),
    ],
)
def test_invalid_options_of_a_sink_with_sync(case: Case) -> None:
    assert_option_error(ZeromqSink.config_type, {"sync": SYNC}, case)


@pytest.mark.parametrize(
    "case",
    [
        ({"listen": AT}, "connect", "sync requires socket: sub and one endpoint in connect"),
        ({"connect": [AT, OTHER]}, "connect", "socket: sub and one endpoint in connect"),
        ({"connect": AT, "socket": "pull"}, "socket", "sync requires socket: sub"),
        ({"connect": AT, "topic": "t"}, "topic", "sync excludes topic"),
        ({"connect": SYNC}, "sync", "sync requires another endpoint than connect"),
    ],
)
def test_invalid_options_of_a_source_with_sync(case: Case) -> None:
    assert_option_error(ZeromqSource.config_type, {"sync": SYNC}, case)
