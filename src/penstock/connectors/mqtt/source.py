"""The source of MQTT topics."""

from __future__ import annotations

import asyncio

import pyarrow as pa

from penstock.connectors.mqtt.config import MqttSourceConfig
from penstock.connectors.mqtt.reader import METADATA, Session
from penstock.sdk import Context, Journal, ReceivingSource


class MqttSource(ReceivingSource[MqttSourceConfig]):
    """Subscribes to topics of an MQTT broker, version 3.1.1 or 5.

    Messages of QoS 1 and 2 are acknowledged (PUBACK, PUBREC) once they are in the journal, and the
    broker keeps them while the pipeline is stopped. Messages of QoS 0 are lost while the pipeline
    is stopped, and counted as lost while the journal is full.

    ```yaml
    type: mqtt
    url: mqtt://localhost:1883
    topic: sensors/+/temperature
    qos: 1
    metadata: {sensor: topic}
    ```
    """

    parallelism = "the connection"
    variants = ("qos: 0", "qos: 1", "qos: 2")
    extra = "mqtt"
    client_modules = ("gmqtt",)

    def __init__(self, config: MqttSourceConfig, context: Context | None = None) -> None:
        super().__init__(config, context)
        packet = {1: "PUBACK", 2: "PUBREC"}.get(config.qos)
        self.acknowledges = packet and f"{packet} once the message is on disk"

    def message_metadata_schema(self) -> pa.Schema:
        return METADATA

    def check(self) -> None:
        asyncio.run(Session(self.config, f"{self._client_id}-check").check())

    async def receive(self, journal: Journal) -> None:
        session = Session(self.config, self._client_id)
        try:
            await session.open(journal)
            journal.ready.set()
            await session.ended
        finally:
            await session.close()

    @property
    def _client_id(self) -> str:
        default = f"penstock-{self.context.pipeline}-{self.context.node}"
        return self.config.client_id or default
