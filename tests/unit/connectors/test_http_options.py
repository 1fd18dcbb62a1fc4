"""Invalid options of HTTP clients: the sink, the poll source and WebSockets."""

from __future__ import annotations

import pytest

from option_errors import Case, assert_option_error
from penstock.connectors.http import HttpSink
from penstock.connectors.http.influxdb.config import InfluxdbSinkConfig
from penstock.connectors.http.poll import HttpPollSource
from penstock.connectors.http.websocket import WebsocketSink, WebsocketSource

POLL = {"url": "http://localhost/x", "interval": "20ms"}


@pytest.mark.parametrize(
    "case",
    [
        ({"url": "ftp://localhost/x"}, "url", "expected http://HOST or https://HOST[:PORT]"),
        ({"pointer": "/d"}, "pointer", "pointer requires framing: array"),
        ({"framing": "array", "pointer": "d"}, "pointer", "expected a JSON pointer"),
        ({"paging": {"by": "page"}}, "paging", "paging by page requires framing"),
        ({"paging": {"by": "cursor"}}, "paging.cursor", "expected pointer or header"),
        (
            {"paging": {"by": "cursor", "header": "X", "pointer": "/x"}},
            "paging.cursor",
            "expected pointer or header",
        ),
        ({"paging": {"by": "other"}}, "paging", "'link', 'page', 'cursor'"),
    ],
)
def test_invalid_options_of_the_poll_source(case: Case) -> None:
    assert_option_error(HttpPollSource.config_type, POLL, case)


@pytest.mark.parametrize(
    "case",
    [
        ({"url": "http://localhost/x"}, "url", "expected ws://HOST or wss://HOST[:PORT]"),
        ({"url": "ws://"}, "url", "expected ws://HOST or wss://HOST[:PORT]"),
        ({"url": "ws://u:p@localhost"}, "url", "the user in auth: {username: ..., password: ...}"),
    ],
)
def test_invalid_urls_of_websockets(case: Case) -> None:
    for component in (WebsocketSource, WebsocketSink):
        assert_option_error(component.config_type, {}, case)


@pytest.mark.parametrize(
    "case",
    [
        ({"url": "{x}"}, "url", "expected a URL with a scheme"),
        ({"headers": {"a b": "1"}}, "headers", 'the name of a header, such as X-Id, found "a b"'),
        ({"headers": {"A": "1\n{x}"}}, "headers", 'a header "A" without line breaks'),
    ],
)
def test_invalid_options_of_the_sink(case: Case) -> None:
    assert_option_error(HttpSink.config_type, {"url": "http://localhost"}, case)


@pytest.mark.parametrize(
    "case",
    [
        ({}, "", "expected bucket (InfluxDB 2) or database (InfluxDB 1)"),
        ({"bucket": "b", "database": "d"}, "", "expected bucket (InfluxDB 2) or database"),
        ({"database": "d", "org": "o"}, "", "org requires bucket"),
        ({"bucket": "b", "retention_policy": "r"}, "", "retention_policy requires database"),
        ({"bucket": "b", "precision": "ms"}, "", "precision requires timestamp"),
        ({"bucket": "b", "url": "influx://h"}, "url", "expected http://HOST"),
        ({"bucket": "b", "auth": {"username": "made-up"}}, "auth", "expected username and"),
        ({"bucket": "b", "fields": {"a": {"column": "a", "type": 1}}}, "fields.a.type", "'float'"),
    ],
)  # fmt: skip
def test_invalid_options_of_influxdb(case: Case) -> None:
    assert_option_error(InfluxdbSinkConfig, {"url": "http://h", "measurement": "m"}, case)
