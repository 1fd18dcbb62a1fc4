"""The source of MQTT topics."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Self

import pyarrow as pa
from pydantic import Field, field_validator, model_validator

from penstock.connectors.mqtt.connection import CONNECT_SECONDS, ConnectionConfig
from penstock.connectors.mqtt.topics import filter_mistake
from penstock.core.errors import StateError
from penstock.core.secret import revealed
from penstock.sdk import (
    ByteSize,
    Config,
    Context,
    Duration,
    Journal,
    Message,
    Permanent,
    ReceivingConfig,
    ReceivingSource,
    Transient,
)

IN_FLIGHT = 1000
"""How many messages the broker may send before the first of them is acknowledged (MQTT 5)."""
_FOR_EVER = 0xFFFFFFFF
_FAILED = 0x80


class Will(Config):
    """What the broker sends when we are gone without a word."""

    topic: str
    """Its topic."""
    payload: str = ""
    """Its text."""
    qos: int = Field(default=0, ge=0, le=2)
    """Its quality of service."""
    retain: bool = False
    """Whether the broker keeps it for those who subscribe later."""


class MqttSourceConfig(ConnectionConfig, ReceivingConfig):
    topic: str | list[str]
    """The topics to subscribe to; `+` stands for one level, `#` for all that follow."""
    client_id: str | None = None
    """Our name at the broker, which keeps messages by it; `penstock-PIPELINE-NODE` if left out."""
    session_expiry: Duration | None = Field(default=None, ge=0)
    """How long the broker keeps messages while we are away (MQTT 5); for ever if left out."""
    clean_start: bool = False
    """Forget at each start what the broker kept for us."""
    max_packet_size: ByteSize | None = Field(default=None, ge=1, le=_FOR_EVER)
    """The largest packet that the broker may send (MQTT 5): larger messages do not come."""
    retained: bool = True
    """Take messages that the broker retained before we subscribed."""
    will: Will | None = None
    """What the broker sends when we are gone without a word."""

    @field_validator("topic")
    @classmethod
    def _filters(cls, topic: str | list[str]) -> str | list[str]:
        filters = [topic] if isinstance(topic, str) else topic
        if not filters:
            raise ValueError("give at least one topic")
        for each in filters:
            if (mistake := filter_mistake(each)) is not None:
                raise ValueError(f'"{each}": {mistake}')
        return topic

    @model_validator(mode="after")
    def _version(self) -> Self:
        if self.max_packet_size is not None and self.version != "5":
            raise ValueError('max_packet_size needs version: "5"')
        return self

    @property
    def filters(self) -> list[str]:
        return [self.topic] if isinstance(self.topic, str) else self.topic


class MqttSource(ReceivingSource[MqttSourceConfig]):
    """Subscribes to topics of an MQTT broker, version 3.1.1 or 5.

    The broker is told that a message arrived (PUBACK, or PUBREC of QoS 2) once it is on disk, and
    keeps messages of QoS 1 and 2 while we are away. Messages of QoS 0 are lost while nobody
    receives, and counted where the journal is full.

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
    clients = ("gmqtt",)

    def __init__(self, config: MqttSourceConfig, context: Context | None = None) -> None:
        super().__init__(config, context)
        answer = {1: "PUBACK", 2: "PUBREC"}.get(config.qos)
        self.acknowledges = answer and f"{answer} once the message is on disk"

    def about(self) -> pa.Schema:
        return pa.schema(
            [
                ("topic", pa.string()),
                ("qos", pa.int32()),
                ("retained", pa.bool_()),
                ("content_type", pa.string()),
                ("response_topic", pa.string()),
                ("correlation_data", pa.binary()),
                ("properties", pa.map_(pa.string(), pa.string())),
            ]
        )

    def check(self) -> None:
        asyncio.run(Session(self.config, f"{self._client_id}-check").tried())

    async def receive(self, journal: Journal) -> None:
        session = Session(self.config, self._client_id)
        try:
            await session.opened(journal)
            journal.ready.set()
            await session.ended
        finally:
            await session.close()

    @property
    def _client_id(self) -> str:
        named = f"penstock-{self.context.pipeline}-{self.context.node}"
        return self.config.client_id or named


class Session:
    """One connection to the broker. `ended` is done with the error that ended it."""

    def __init__(self, config: MqttSourceConfig, client_id: str) -> None:
        self._config, self._client_id = config, client_id
        self.ended: asyncio.Future[None]
        self._client: Any = None

    async def tried(self) -> None:
        """Connects as somebody else, who has no messages, and leaves."""
        await self._connected(clean=True, expiry=0)
        await self.close()

    async def opened(self, journal: Journal) -> None:
        """Connects and subscribes. Raises Transient or Permanent."""
        expiry = self._config.session_expiry
        self._journal = journal
        await self._connected(
            clean=self._config.clean_start, expiry=_FOR_EVER if expiry is None else round(expiry)
        )
        await self._subscribed()

    async def close(self) -> None:
        """Leaves; what is not acknowledged comes again."""
        if self._client is not None:
            client, self._client = self._client, None
            await client.disconnect()

    async def _connected(self, *, clean: bool, expiry: int) -> None:
        import gmqtt
        from gmqtt.mqtt.constants import MQTTv50, MQTTv311

        config = self._config
        five = config.version == "5"
        self.ended = asyncio.get_running_loop().create_future()
        log = logging.Logger("gmqtt", logging.CRITICAL)
        properties = {"session_expiry_interval": expiry, "receive_maximum": IN_FLIGHT}
        if config.max_packet_size is not None:
            properties["maximum_packet_size"] = config.max_packet_size
        will = config.will and gmqtt.Message(
            config.will.topic, config.will.payload, config.will.qos, config.will.retain
        )
        client = gmqtt.Client(
            self._client_id, clean_session=clean, optimistic_acknowledgement=False, logger=log,
            will_message=will, **(properties if five else {}),
        )  # fmt: skip
        client.set_config({"reconnect_retries": 0})
        client.on_message = self._took
        client.on_disconnect = self._lost
        if config.username is not None:
            client.set_auth_credentials(config.username, revealed(config.password))
        connecting = client.connect(
            config.host, config.port, ssl=config.context() or False,
            keepalive=round(config.keep_alive), version=MQTTv50 if five else MQTTv311,
        )  # fmt: skip
        try:
            await asyncio.wait_for(connecting, CONNECT_SECONDS)
        except gmqtt.mqtt.handler.MQTTConnectError as error:
            raise config.refused(error._code, str(error)) from None
        except (OSError, TimeoutError) as error:
            raise config.unreachable(error) from None
        self._client = client

    async def _subscribed(self) -> None:
        import gmqtt

        loop = asyncio.get_running_loop()
        granted: asyncio.Future[list[int]] = loop.create_future()
        self._client.on_subscribe = lambda client, mid, codes, properties: granted.set_result(codes)
        handling = 0 if self._config.retained else 2
        given = {"retain_handling_options": handling} if self._config.version == "5" else {}
        filters = self._config.filters
        self._client.subscribe(
            [gmqtt.Subscription(each, qos=self._config.qos, **given) for each in filters]
        )
        try:
            codes = await asyncio.wait_for(granted, CONNECT_SECONDS)
        except TimeoutError as error:
            raise self._config.unreachable(error) from None
        for each, code in zip(filters, codes, strict=True):
            if code >= _FAILED:
                raise Permanent(
                    f'the MQTT broker does not let us subscribe to "{each}"',
                    code="not-authorized",
                    hint="the user needs the right to read it",
                )

    async def _took(
        self, client: Any, topic: str, payload: bytes, qos: int, properties: dict[str, Any]
    ) -> int:
        """Returns when the message is on disk; then the broker is told."""
        retained = bool(properties.get("retain"))
        if retained and not self._config.retained:
            return 0
        message = Message(bytes(payload), _about(topic, qos, retained, properties))
        try:
            if qos == 0:
                self._journal.offer([message])
            else:
                await self._journal.append([message])
        except (StateError, Permanent) as error:
            self._end(error)
            raise
        return 0

    def _lost(self, client: Any, packet: Any, error: BaseException | None = None) -> None:
        self._end(self._config.unreachable(error or "the connection was lost"))

    def _end(self, error: Transient | Permanent | StateError) -> None:
        if not self.ended.done():
            self.ended.set_exception(error)


def _about(topic: str, qos: int, retained: bool, properties: dict[str, Any]) -> dict[str, Any]:
    def first(name: str) -> Any:
        return next(iter(properties.get(name, ())), None)

    return {
        "topic": topic,
        "qos": qos,
        "retained": retained,
        "content_type": first("content_type"),
        "response_topic": first("response_topic"),
        "correlation_data": first("correlation_data"),
        "properties": properties.get("user_property"),
    }
