"""MQTT with paho (sends) and gmqtt (receives)."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from clients.system import Ready, System
from penstock.connectors.mqtt import MqttSink, MqttSource
from servers.mosquitto import PASSWORD, USER, Mosquitto


class Mqtt(System):
    name, source, sink = "mqtt (QoS 1)", MqttSource, MqttSink
    messages = 20_000
    how = "drops"

    @classmethod
    def server(cls) -> Any:
        return Mosquitto()

    def __init__(self, server: Any) -> None:
        self._topic, self._login, self._port = server.new_topic(), server.login, server.port

    def options(self) -> dict[str, Any]:
        return {**self._login, "topic": self._topic, "qos": 1, "client_id": uuid.uuid4().hex}

    def sink_options(self) -> dict[str, Any]:
        return {**self._login, "topic": self._topic, "qos": 1}

    def send(self, payloads: list[bytes]) -> None:
        from paho.mqtt import client as paho

        client = paho.Client(paho.CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5)
        client.username_pw_set(USER, PASSWORD)
        client.max_inflight_messages_set(1000)
        client.connect("127.0.0.1", self._port)
        client.loop_start()
        for sent in [client.publish(self._topic, payload, 1) for payload in payloads]:
            sent.wait_for_publish(120)
        client.disconnect()
        client.loop_stop()

    def take(self, count: int, ready: Ready) -> int:
        return asyncio.run(self._take(count, ready))

    async def _take(self, count: int, ready: Ready) -> int:
        from gmqtt import Client

        done, taken = asyncio.Event(), 0

        def on_message(*_: Any) -> int:
            nonlocal taken
            taken += 1
            if taken == count:
                done.set()
            return 0

        client = Client(uuid.uuid4().hex, receive_maximum=1000)
        client.set_auth_credentials(USER, PASSWORD)
        client.on_message = on_message
        client.on_subscribe = lambda *_: ready()
        await client.connect("127.0.0.1", self._port)
        client.subscribe(self._topic, qos=1)
        await done.wait()
        await client.disconnect()
        return taken
