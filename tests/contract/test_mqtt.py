from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.connectors.mqtt import MqttSink, MqttSource
from penstock.testing.contract import ReceivingContract, SinkContract
from servers.mosquitto import USER, Mosquitto, Subscriber


class OnMqtt:
    """The broker and credentials of both contracts."""

    wrong_credentials = {"auth": {"username": USER, "password": "wrong"}}

    @pytest.fixture
    def server(self, mosquitto: Mosquitto) -> Mosquitto:
        return mosquitto

    @pytest.fixture
    def topic(self, mosquitto: Mosquitto) -> str:
        return mosquitto.new_topic()


class TestMqttSource(OnMqtt, ReceivingContract):
    component = MqttSource
    variant = "qos: 1"
    extra_options: dict[str, Any] = {}
    qos = 1

    @pytest.fixture
    def options(self, mosquitto: Mosquitto, topic: str) -> dict[str, Any]:
        options = {"topic": topic, "client_id": topic.replace("/", "-"), "qos": self.qos}
        return {**mosquitto.login, **options, **self.extra_options}

    @pytest.fixture
    def send(self, mosquitto: Mosquitto, topic: str) -> Callable[[list[bytes]], None]:
        return lambda payloads: mosquitto.publish(topic, payloads, self.qos)


class TestMqttSourceExactlyOnce(TestMqttSource):
    variant = "qos: 2"
    qos = 2


class TestMqttSourceVersion311(TestMqttSource):
    extra_options = {"version": "3.1.1"}


class TestMqttSourceAtMostOnce(TestMqttSource):
    variant = "qos: 0"
    qos = 0
    lossy_reason = "messages of QoS 0 are not kept"


class TestMqttSink(OnMqtt, SinkContract):
    component = MqttSink
    variant = "qos: 1"
    qos = 1

    @pytest.fixture
    def options(self, mosquitto: Mosquitto, topic: str) -> dict[str, Any]:
        return {**mosquitto.login, "topic": topic, "qos": self.qos}

    @pytest.fixture(autouse=True)
    def subscriber(self, mosquitto: Mosquitto, topic: str) -> Iterator[Subscriber]:
        with Subscriber(mosquitto, topic) as subscriber:
            yield subscriber

    @pytest.fixture
    def rows(self, subscriber: Subscriber, mosquitto: Mosquitto, topic: str) -> Any:
        def rows(schema: Any) -> Any:
            mosquitto.publish(topic, [b"last"], 2)
            until = time.monotonic() + 30
            while not any(m.payload == b"last" for m in subscriber.messages):
                assert time.monotonic() < until
                time.sleep(0.01)
            payloads = [m.payload for m in subscriber.messages if m.payload != b"last"]
            subscriber.messages.clear()
            return self.decode(payloads, schema)

        return rows


class TestMqttSinkExactlyOnce(TestMqttSink):
    variant = "qos: 2"
    qos = 2


class TestMqttSinkAtMostOnce(TestMqttSink):
    variant = "qos: 0"
    qos = 0
