"""Invalid options of the NATS source and sink."""

from __future__ import annotations

import pytest

from option_errors import Case, assert_option_error
from penstock.connectors.nats import NatsSink, NatsSource

URL = {"url": "nats://localhost"}
CREDENTIALS = "expected username and password, or token, or nkey, or creds"
CONSUMER = "consumer_settings requires consumer, or stream and group"
OF_QUEUE = {"subject": "a", "group": "g"}


@pytest.mark.parametrize(
    "case",
    [
        ({}, "subject", "expected subject, stream or bucket"),
        ({"subject": "a..b"}, "subject", "non-empty tokens between dots"),
        ({"subject": "a.>.b"}, "subject", "expected > only as the entire last token"),
        ({"subject": ["a.*", "a.b"]}, "subject", '"a.*" and "a.b" overlap'),
        ({"subject": "a", "start": "latest"}, "start", "start requires bucket, or stream"),
        ({"stream": "a.b"}, "stream", "expected a name without spaces and"),
        (
            {"stream": "A", "group": "g", "start": "latest"},
            "start",
            "start requires bucket, or stream without group",
        ),
        (
            {"stream": "A", "group": "g", "subject": ["a", "b"]},
            "group",
            "group with stream requires a single subject",
        ),
        ({"stream": "A", "journal": {}}, "journal", "journal requires subject without stream"),
        (
            {"stream": "A", "consumer_settings": {"description": "d"}},
            "consumer_settings",
            CONSUMER,
        ),
        ({**OF_QUEUE, "consumer_settings": {"description": "d"}}, "consumer_settings", CONSUMER),
        (
            {"stream": "A", "consumer": "c", "consumer_settings": {"max_deliver": 3}},
            "consumer_settings.max_deliver",
            "max_deliver requires stream and group",
        ),
        ({"bucket": "B", "group": "g"}, "group", "bucket excludes group"),
        ({"stream": "A", "bucket": "B"}, "bucket", "expected either stream or bucket"),
        ({"stream": "A", "keys": "k"}, "keys", "keys requires bucket"),
        ({"bucket": "B", "subject": "a"}, "subject", "bucket excludes subject; use keys"),
        ({"stream": "A", "start": {}}, "start", "expected timestamp or offset"),
        ({"stream": "A", "start": {"offset": 0}}, "start.offset", "greater than or equal to 1"),
    ],
)
def test_invalid_options_of_the_source(case: Case) -> None:
    assert_option_error(NatsSource.config_type, URL, case)


@pytest.mark.parametrize(
    "case",
    [
        ({}, "subject", "expected either subject or bucket"),
        ({"subject": "a", "bucket": "B"}, "bucket", "expected either subject or bucket"),
        ({"subject": "a b"}, "subject", "expected a subject without spaces"),
        ({"subject": "a.*"}, "subject", "and the wildcards * and >"),
        ({"subject": "a", "key": "k"}, "key", "key requires bucket"),
        ({"subject": "a", "message_id": "x"}, "message_id", "requires stream or bucket"),
        ({"bucket": "B", "stream": "S"}, "stream", "bucket excludes stream"),
        ({"subject": "a", "headers": {"no token": "x"}}, "headers", "not a valid header name"),
        ({"bucket": "B", "key": "{id"}, "key", "expected {column} with both braces"),
    ],
)
def test_invalid_options_of_the_sink(case: Case) -> None:
    assert_option_error(NatsSink.config_type, URL, case)


@pytest.mark.parametrize(
    "case",
    [
        ({"url": "http://localhost"}, "url", "expected nats://HOST or tls://HOST[:PORT]"),
        ({"url": "nats://user:secret@localhost"}, "url", "auth.username and auth.password"),
        ({"url": []}, "url", "expected at least one URL"),
        ({"url": "tls://localhost", "tls": False}, "tls", "contradicts the scheme of the URL"),
        ({"auth": {"username": "u"}}, "auth", CREDENTIALS),
        ({"auth": {"token": "t", "nkey": "n"}}, "auth", CREDENTIALS),
        ({"auth": {"jwt": "j"}}, "auth", CREDENTIALS),
        ({"auth": {"jwt": "j", "creds": "c"}}, "auth", "jwt requires nkey"),
        ({"timeout": "0s"}, "timeout", "a duration of at least 1ms"),
    ],
)
def test_invalid_options_of_the_connection(case: Case) -> None:
    for component in (NatsSource, NatsSink):
        assert_option_error(component.config_type, {**URL, "subject": "a"}, case)
