"""Sessions at a broker, which receive messages into the journal."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pyarrow as pa

from penstock.connectors.mqtt.config import CONNECT_SECONDS, MqttSourceConfig
from penstock.connectors.mqtt.errors import FAILURE, connack_error, connection_error
from penstock.connectors.mqtt.packets import replace_reader
from penstock.core.errors import StateError
from penstock.core.secret import revealed
from penstock.sdk import Journal, Message, Permanent, Transient
from penstock.sdk.network.byte_budget import ByteBudget

RECEIVE_MAXIMUM = 1000
"""The maximum number of messages that the broker sends without an acknowledgement (MQTT 5)."""
_NEVER_EXPIRES = 0xFFFFFFFF
_SEND_RETAINED, _SKIP_RETAINED = 0, 2
METADATA = pa.schema(
    [
        ("topic", pa.string()),
        ("qos", pa.int32()),
        ("retained", pa.bool_()),
        ("content_type", pa.string()),
        ("response_topic", pa.string()),
        ("correlation_data", pa.binary()),
        ("headers", pa.map_(pa.string(), pa.string())),
    ]
)


class Session:
    """A connection to the broker with a subscription. `ended` holds the error that ended it."""

    def __init__(self, config: MqttSourceConfig, client_id: str) -> None:
        self._config, self._client_id = config, client_id
        self.ended: asyncio.Future[None]
        self._client: Any = None
        self._budget = ByteBudget()

    async def check(self) -> None:
        """Connects with a clean session and disconnects. Raises Transient or Permanent."""
        await self._connect(clean=True, ttl=0)
        await self.close()

    async def open(self, journal: Journal) -> None:
        """Connects and subscribes. Raises Transient or Permanent."""
        ttl = self._config.session_ttl
        self._journal = journal
        await self._connect(
            clean=self._config.clean_start, ttl=_NEVER_EXPIRES if ttl is None else round(ttl)
        )
        await self._subscribe()

    async def close(self) -> None:
        """Disconnects. The broker sends unacknowledged messages again."""
        if self._client is not None:
            client, self._client = self._client, None
            await client.disconnect()

    async def _connect(self, *, clean: bool, ttl: int) -> None:
        import gmqtt
        from gmqtt.mqtt.constants import MQTTv50, MQTTv311

        config = self._config
        self.ended = asyncio.get_running_loop().create_future()
        client = self._create_client(clean, ttl)
        connection = client.connect(
            config.host, config.port, ssl=config.ssl_context() or False,
            keepalive=round(config.keep_alive), version=MQTTv50 if config.v5 else MQTTv311,
        )  # fmt: skip
        try:
            await asyncio.wait_for(connection, CONNECT_SECONDS)
        except gmqtt.mqtt.handler.MQTTConnectError as error:
            raise connack_error(config, error._code, str(error)) from None
        except (OSError, TimeoutError) as error:
            raise connection_error(config, error) from None
        self._client = client

    def _create_client(self, clean: bool, ttl: int) -> Any:
        import gmqtt

        config, will = self._config, self._config.will
        properties = {"session_expiry_interval": ttl, "receive_maximum": RECEIVE_MAXIMUM}
        if config.max_packet_size is not None:
            properties["maximum_packet_size"] = config.max_packet_size
        budget = self._budget

        class Client(gmqtt.Client):  # type: ignore[misc]
            """A client whose connections read packets in linear time."""

            async def _create_connection(self, *args: Any, **options: Any) -> Any:
                connection = await super()._create_connection(*args, **options)
                replace_reader(connection, budget)
                return connection

        client = Client(
            self._client_id, clean_session=clean, optimistic_acknowledgement=False,
            logger=logging.Logger("gmqtt", logging.CRITICAL),
            will_message=will and gmqtt.Message(will.topic, will.payload, will.qos, will.retain),
            **(properties if config.v5 else {}),
        )  # fmt: skip
        client.set_config({"reconnect_retries": 0})
        client.on_message = self._on_message
        client.on_disconnect = self._on_disconnect
        if config.auth is not None:
            client.set_auth_credentials(config.auth.username, revealed(config.auth.password))
        return client

    async def _subscribe(self) -> None:
        import gmqtt

        config = self._config
        suback: asyncio.Future[list[int]] = asyncio.get_running_loop().create_future()
        self._client.on_subscribe = lambda client, mid, codes, properties: suback.set_result(codes)
        handling = _SEND_RETAINED if config.retained else _SKIP_RETAINED
        options = {"retain_handling_options": handling} if config.v5 else {}
        self._client.subscribe(
            [gmqtt.Subscription(topic, qos=config.qos, **options) for topic in config.filters]
        )
        try:
            codes = await asyncio.wait_for(suback, CONNECT_SECONDS)
        except TimeoutError as error:
            raise connection_error(config, error) from None
        for topic, code in zip(config.filters, codes, strict=True):
            if code >= FAILURE:
                raise Permanent(
                    f'cannot subscribe to "{topic}": the MQTT broker rejected the subscription',
                    code="authorization",
                    hint="Grant the user read access to the topic.",
                )

    async def _on_message(
        self, client: Any, topic: str, payload: bytes, qos: int, properties: dict[str, Any]
    ) -> int:
        """Appends a message to the journal. The return acknowledges the message."""
        retained = bool(properties.get("retain"))
        if retained and not self._config.retained:
            return 0
        message = Message(bytes(payload), _message_metadata(topic, qos, retained, properties))
        try:
            if qos == 0:
                self._journal.offer([message])
            else:
                with self._budget.share() as share:
                    share.resize(len(payload))
                    await self._journal.append([message])
        except (StateError, Permanent) as error:
            self._end(error)
            raise
        return 0

    def _on_disconnect(self, client: Any, packet: Any, error: BaseException | None = None) -> None:
        if self._client is not None:
            self._end(connection_error(self._config, error or "the connection was lost"))

    def _end(self, error: Transient | Permanent | StateError) -> None:
        if not self.ended.done():
            self.ended.set_exception(error)


def _message_metadata(
    topic: str, qos: int, retained: bool, properties: dict[str, Any]
) -> dict[str, Any]:
    def first_value(name: str) -> Any:
        return next(iter(properties.get(name, ())), None)

    return {
        "topic": topic,
        "qos": qos,
        "retained": retained,
        "content_type": first_value("content_type"),
        "response_topic": first_value("response_topic"),
        "correlation_data": first_value("correlation_data"),
        "headers": properties.get("user_property"),
    }
