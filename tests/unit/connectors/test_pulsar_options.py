"""Invalid options of the Pulsar source and sink."""

from __future__ import annotations

import pytest

from option_errors import Case, assert_option_error
from penstock.connectors.pulsar import PulsarSink, PulsarSource

OPTIONS = {"url": "pulsar://localhost", "topic": "orders"}
SHARED = {"subscription": "workers", "subscription_type": "shared"}
CREDENTIALS = "expected token, or username and password, or oauth2"
KEY = {"certificate": "c", "key": "k", "key_password": "made-up"}


@pytest.mark.parametrize(
    "case",
    [
        ({"topic": []}, "topic", "at least one topic is required"),
        ({"subscription": ""}, "subscription", "the name of the subscription is empty"),
        ({"subscription_type": "shared"}, "subscription_type", "requires subscription"),
        (
            {**SHARED, "start": {"timestamp": "2024-01-01"}},
            "start",
            "subscription_type requires start: earliest or latest",
        ),
        ({**SHARED, "on_data_loss": "continue"}, "on_data_loss", "is not supported with"),
        ({"journal": {}}, "journal", "journal requires subscription_type"),
        ({"consumer": "me"}, "consumer", "consumer requires subscription_type"),
        ({"start": {"offset": {"orders": "1"}}}, "start.offset", "LEDGER:ENTRY:BATCH"),
        ({"start": {"offset": {"orders": "1:--2"}}}, "start.offset", "LEDGER:ENTRY:BATCH"),
        ({"start": {"offset": {"orders": "1:²"}}}, "start.offset", "LEDGER:ENTRY:BATCH"),
    ],
)
def test_invalid_options_of_the_source(case: Case) -> None:
    assert_option_error(PulsarSource.config_type, OPTIONS, case)


@pytest.mark.parametrize(
    "case",
    [
        ({"topic": "a-{"}, "topic", "expected {column} with both braces"),
        ({"chunking": True}, "chunking", "chunking requires batching: false"),
        ({"batching": True}, "batching", "Input should be False"),
        ({"delay": "-1s"}, "delay", "expected a duration such as"),
        ({"compression": "rar"}, "compression", "Input should be 'none', 'lz4'"),
    ],
)
def test_invalid_options_of_the_sink(case: Case) -> None:
    assert_option_error(PulsarSink.config_type, OPTIONS, case)


@pytest.mark.parametrize(
    "case",
    [
        ({"url": "http://localhost"}, "url", "expected pulsar://HOST:PORT or pulsar+ssl://"),
        ({"url": "pulsar://user:made-up@localhost"}, "url", "without a user; set auth"),
        ({"url": ["pulsar://a", "pulsar+ssl://b"]}, "url", "URLs with the same scheme"),
        ({"auth": {"username": "ann"}}, "auth", CREDENTIALS),
        (
            {"auth": {"token": "a", "username": "ann", "password": "made-up"}},
            "auth",
            CREDENTIALS,
        ),
        ({"tls": {"verify": False}}, "tls", "tls requires a URL with a TLS scheme"),
        (
            {"url": "pulsar+ssl://localhost", "tls": KEY},
            "tls.key_password",
            "is not supported by the Pulsar client",
        ),
    ],
)
def test_invalid_options_of_the_connection(case: Case) -> None:
    for component in (PulsarSource, PulsarSink):
        assert_option_error(component.config_type, OPTIONS, case)
