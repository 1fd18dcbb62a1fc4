"""The sink of MQTT topics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pydantic import Field, field_validator

from penstock.connectors.mqtt.connection import ConnectionConfig
from penstock.connectors.mqtt.publishing import Outgoing, Publisher
from penstock.connectors.mqtt.topics import name_mistake
from penstock.core.errors import raise_all
from penstock.sdk import (
    BatchId,
    Capability,
    Context,
    Duration,
    Rejected,
    Sink,
    Writer,
)
from penstock.sdk.kit.confirmed import ConfirmedWriter
from penstock.sdk.kit.template import Template


class MqttSinkConfig(ConnectionConfig):
    topic: Template
    """The topic. `{column}` in it is replaced by the row's value: `rooms/{room}/set`."""
    retain: bool = False
    """Whether the broker keeps a topic's last message for those who subscribe later."""
    client_id: str | None = None
    """Our name at the broker, to which each process adds its own; a random one if left out."""
    content_type: str | None = None
    """What the payload is (MQTT 5), as in `application/json`."""
    properties: dict[str, Template] = {}
    """User properties of messages (MQTT 5); `{column}` in them is replaced by the row's value."""
    message_expiry: Duration | None = Field(default=None, ge=1)
    """How long the broker keeps a message for subscribers that are away (MQTT 5)."""
    in_flight: int = Field(default=100, ge=1, le=65_535)
    """How many messages are sent before the first of them is acknowledged."""
    timeout: Duration = 30.0
    """How long an acknowledgement may take."""

    @field_validator("topic")
    @classmethod
    def _named(cls, topic: Template) -> Template:
        if topic.constant is not None and (mistake := name_mistake(topic.constant)) is not None:
            raise ValueError(mistake)
        return topic


class MqttSink(Sink[MqttSinkConfig]):
    """Publishes rows to topics of an MQTT broker, version 3.1.1 or 5.

    Messages that the broker refuses by themselves (MQTT 5) become dead letters. With `qos: 0` it
    refuses nothing in words: messages that it does not allow are gone.

    ```yaml
    type: mqtt
    from: commands
    url: mqtts://broker.example.com
    topic: rooms/{room}/set
    retain: true
    ```
    """

    variants = ("qos: 0", "qos: 1", "qos: 2")
    capabilities = frozenset({Capability.BYTES, Capability.ORDERED})
    extra = "mqtt"
    clients = ("paho",)

    def __init__(self, config: MqttSinkConfig, context: Context | None = None) -> None:
        super().__init__(config, context)
        answer = {1: "PUBACK", 2: "PUBCOMP"}.get(config.qos)
        self.acknowledges = (
            f"the broker has answered each message ({answer})" if answer
            else "the broker has answered a request that was sent after them (UNSUBACK)"
        )  # fmt: skip

    def accepts(self, columns: pa.Schema) -> None:
        super().accepts(columns)
        texts = [(("topic",), self.config.topic), *(
            (("properties", name), text) for name, text in self.config.properties.items()
        )]  # fmt: skip
        raise_all(each for option, text in texts for each in text.mistakes(columns, *option))

    def check(self) -> None:
        self.open().close()

    def open(self) -> Publisher:
        return Publisher(self.config)

    def writer(self, client: Any, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        return MqttWriter(client, self.config)


class MqttWriter(ConfirmedWriter[Outgoing]):
    def __init__(self, publisher: Publisher, config: MqttSinkConfig) -> None:
        self._publisher, self._config = publisher, config

    def messages(self, rows: pa.RecordBatch, payloads: Any) -> Iterator[Outgoing | Rejected]:
        topics = self._config.topic.fill(rows)
        filled = {name: text.fill(rows) for name, text in self._config.properties.items()}
        for at, (topic, payload) in enumerate(zip(topics, payloads.to_pylist(), strict=True)):
            mistake = "the topic is null" if topic is None else name_mistake(topic)
            if topic is None or mistake is not None:
                yield Rejected(f"{mistake}", code="topic")
                continue
            user = [(name, text) for name, texts in filled.items() if (text := texts[at])]
            yield Outgoing(topic, payload, user)

    def send(self, messages: Sequence[Outgoing]) -> list[Rejected | None]:
        return self._publisher.send(messages)
