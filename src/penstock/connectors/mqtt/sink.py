"""The sink of MQTT topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.connectors.mqtt.config import MqttSinkConfig
from penstock.connectors.mqtt.writer import MqttWriter, Publisher
from penstock.core.errors import raise_all
from penstock.sdk import BatchId, Capability, Context, Sink, Writer
from penstock.sdk.columns.checks import check_primary_key


class MqttSink(Sink[MqttSinkConfig]):
    """Publishes rows to topics of an MQTT broker, version 3.1.1 or 5.

    With `retain: true` and `mode: upsert` the topic must contain the primary key, and a delete
    clears the retained message of the topic by an empty message.

    Messages that the broker rejects one by one (MQTT 5) become dead letters. With `qos: 0` a broker
    drops messages without authorization silently.

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
    optional_capabilities = {Capability.UPSERT: "retain: true", Capability.DELETE: "retain: true"}
    extra = "mqtt"
    client_modules = ("paho",)

    def __init__(self, config: MqttSinkConfig, context: Context | None = None) -> None:
        super().__init__(config, context)
        if config.retain:
            self.capabilities = self.capabilities | self.optional_capabilities.keys()
        packet = {1: "PUBACK", 2: "PUBCOMP"}.get(config.qos)
        self.acknowledges = (
            f"the broker has acknowledged each message ({packet})" if packet
            else "the broker has answered a later request (UNSUBACK)"
        )  # fmt: skip

    def check_schema(self, columns: pa.Schema) -> None:
        super().check_schema(columns)
        templates = [(("topic",), self.config.topic), *(
            (("headers", name), template) for name, template in self.config.headers.items()
        )]  # fmt: skip
        raise_all(
            error for option, template in templates for error in template.check(columns, *option)
        )
        if self.mode == "upsert":
            raise_all(check_primary_key(self.primary_key, self.config.topic.columns, "topic"))

    @property
    def overwriting_columns(self) -> Sequence[str] | None:
        return sorted(self.config.topic.columns) if self.config.retain else None

    def check(self) -> None:
        self.open().close()

    def open(self) -> Publisher:
        return Publisher(self.config)

    def writer(self, client: Any, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        return MqttWriter(client, self.config)
