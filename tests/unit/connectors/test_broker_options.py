"""Invalid options of the connectors for MQTT and RabbitMQ."""

from __future__ import annotations

import pytest

from option_errors import Case, assert_option_error
from penstock.connectors.mqtt import MqttSink, MqttSource
from penstock.connectors.rabbitmq import RabbitmqSink, RabbitmqSource, RabbitmqStreamSource

MQTT = {"url": "mqtt://localhost", "topic": "a"}
AMQP = {"url": "amqp://localhost"}
RANGE = "expected a topic of 1 to 65,535 bytes"
NO_WILDCARDS = "expected a topic without the wildcards + and #"


@pytest.mark.parametrize(
    "case",
    [
        ({"url": "mqtt://user:secret@localhost"}, "url", "auth.username and auth.password"),
        ({"auth": {"password": "secret"}}, "auth", "expected username"),
        ({"tls": True}, "tls", "tls requires a URL with a TLS scheme"),
        ({"url": "mqtts://localhost", "tls": False}, "tls", "contradicts the scheme of the URL"),
    ],
)
def test_invalid_options_of_mqtt(case: Case) -> None:
    for component in (MqttSource, MqttSink):
        assert_option_error(component.config_type, MQTT, case)


@pytest.mark.parametrize(
    ("topic", "of_source", "of_sink"),
    [
        ("a/#/b", '"a/#/b": expected # only as the entire last level', NO_WILDCARDS),
        ("a/b#", '"a/b#": expected # only as the entire last level', NO_WILDCARDS),
        ("a/x+", '"a/x+": expected + only as an entire level', NO_WILDCARDS),
        ("", RANGE, RANGE),
    ],
)
def test_invalid_topics_of_mqtt(topic: str, of_source: str, of_sink: str) -> None:
    options = {"topic": topic}
    assert_option_error(MqttSource.config_type, MQTT, (options, "topic", of_source))
    assert_option_error(MqttSink.config_type, MQTT, (options, "topic", of_sink))


@pytest.mark.parametrize(
    "case",
    [
        ({"url": "http://localhost"}, "url", "expected amqp://HOST or amqps://HOST[:PORT]"),
        ({"url": "amqp://"}, "url", "expected amqp://HOST or amqps://HOST[:PORT]"),
        ({"url": "amqp://made-up:up@localhost"}, "url", "the user in the option auth"),
        ({"url": "amqp://localhost/shop"}, "url", "set the virtual host as virtual_host"),
    ],
)
def test_invalid_urls_of_rabbitmq(case: Case) -> None:
    assert_option_error(RabbitmqSource.config_type, {"queue": "q"}, case)
    assert_option_error(RabbitmqSink.config_type, {"routing_key": "q"}, case)


@pytest.mark.parametrize(
    "case",
    [
        ({}, "exchange", "exchange is required, or routing_key with the name of a queue"),
        ({"routing_key": "q", "create": True}, "create", "create requires exchange"),
    ],
)
def test_invalid_options_of_the_rabbitmq_sink(case: Case) -> None:
    assert_option_error(RabbitmqSink.config_type, AMQP, case)


@pytest.mark.parametrize("start", [{}, {"offset": 1, "timestamp": "2001-01-01T00:00:00Z"}])
def test_invalid_start_positions_of_a_rabbitmq_stream(start: dict[str, object]) -> None:
    case = ({"start": start}, "start", "expected timestamp or offset")
    assert_option_error(RabbitmqStreamSource.config_type, {**AMQP, "stream": "s"}, case)
