"""Publishing of rows and the acknowledgements of the broker."""

from __future__ import annotations

import threading
import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from penstock.connectors.mqtt.config import (
    CONNECT_SECONDS,
    MqttSinkConfig,
    header_error,
    topic_error,
)
from penstock.connectors.mqtt.errors import FAILURE, closed_error, connack_error, connection_error
from penstock.core.secret import revealed
from penstock.sdk import Permanent, Rejected, Transient
from penstock.sdk.messages.acknowledged_writer import AcknowledgedWriter

_UNUSED_TOPIC = "penstock/nothing"
"""A topic without subscription, for requests whose answer confirms earlier messages."""


MAX_PACKET_BYTES = 268_435_455
"""The largest packet of the protocol."""
_PACKET_OVERHEAD = 32


class OutgoingMessage(NamedTuple):
    """A message to publish. `headers` are its user properties."""

    topic: str
    payload: bytes
    headers: Sequence[tuple[str, str]]


def packet_size(message: OutgoingMessage) -> int:
    """Returns an upper bound of the bytes of the packet of a message."""
    headers = sum(len(name.encode()) + len(value.encode()) + 5 for name, value in message.headers)
    return len(message.topic.encode()) + len(message.payload) + headers + _PACKET_OVERHEAD


class MqttWriter(AcknowledgedWriter[OutgoingMessage]):
    """Publishes the rows of a partition."""

    def __init__(self, publisher: Publisher, config: MqttSinkConfig) -> None:
        self._publisher, self._config = publisher, config

    def messages(self, rows: pa.RecordBatch, payloads: Any) -> Iterator[OutgoingMessage | Rejected]:
        topics = self._config.topic.render(rows)
        headers = {name: template.render(rows) for name, template in self._config.headers.items()}
        for index, (topic, payload) in enumerate(zip(topics, payloads.to_pylist(), strict=True)):
            error = "the topic is null" if topic is None else topic_error(topic)
            if topic is None or error is not None:
                yield Rejected(f"{error}", code="invalid-topic")
                continue
            pairs = [(name, value) for name, values in headers.items() if (value := values[index])]
            errors = [error for pair in pairs if (error := header_error(*pair))]
            if errors:
                yield Rejected(errors[0], code="invalid-header")
            else:
                yield OutgoingMessage(topic, payload or b"", pairs)

    def send(self, messages: Sequence[OutgoingMessage]) -> list[Rejected | None]:
        return self._publisher.send(messages)


class Publisher:
    """A connection to the broker, kept between batches. Raises Transient or Permanent."""

    def __init__(self, config: MqttSinkConfig) -> None:
        self._config = config
        self._connection = Connection(config)

    def send(self, messages: Sequence[OutgoingMessage]) -> list[Rejected | None]:
        """Returns once the broker has acknowledged or rejected each message.

        QoS 0 has no acknowledgements: the answer to a later request confirms these messages. If
        the broker closes the connection after a rejection, the publisher connects again.
        """
        reasons: dict[int, str | None] = {}
        pending = list(range(len(messages)))
        while pending:
            unanswered = self._connection.send(messages, pending, reasons)
            if unanswered:
                if len(unanswered) == len(pending):
                    self._connection.raise_if_lost(messages[unanswered[0]].topic)
                self._connection.close()
                self._connection = Connection(self._config)
            pending = unanswered
        return [_rejected(reasons[index]) for index in range(len(messages))]

    def close(self) -> None:
        """Disconnects."""
        self._connection.close()


class Connection:
    """One connection to the broker. A lost connection is not reconnected."""

    def __init__(self, config: MqttSinkConfig) -> None:
        from paho.mqtt import client as paho

        self._config = config
        self._changed = threading.Condition()
        self._connected = False
        self._error: Transient | Permanent | None = None
        self._closed: tuple[str | None, int] | None = None
        self._answers: dict[int, str | None] = {}
        self._max_size = MAX_PACKET_BYTES
        client_id = f"{config.client_id or 'penstock'}-{uuid.uuid4().hex[:12]}"
        client: Any = paho.Client(
            paho.CallbackAPIVersion.VERSION2, client_id,
            protocol=paho.MQTTv5 if config.v5 else paho.MQTTv311, reconnect_on_failure=False,
        )  # fmt: skip
        client.on_connect = self._on_connect
        client.on_disconnect = self._on_disconnect
        client.on_publish = self._on_publish
        client.on_unsubscribe = self._on_unsubscribe
        client.connect_timeout = CONNECT_SECONDS
        client.max_inflight_messages_set(config.max_in_flight)
        if config.auth is not None:
            client.username_pw_set(config.auth.username, revealed(config.auth.password))
        if (context := config.ssl_context()) is not None:
            client.tls_set_context(context)
        self._client = client
        self._connect()

    def send(
        self,
        messages: Sequence[OutgoingMessage],
        indexes: Sequence[int],
        reasons: dict[int, str | None],
    ) -> list[int]:
        """Publishes the messages at `indexes`. Returns the indexes of unanswered messages.

        Puts the reason of a rejection, or None, into `reasons` for each answered message.
        """
        queue = deque(indexes)
        in_flight: dict[int, int] = {}
        while queue or in_flight:
            while queue and len(in_flight) < self._config.max_in_flight and self._error is None:
                index = queue.popleft()
                if (excess := self._excess(messages[index])) is not None:
                    reasons[index] = excess
                    continue
                in_flight[self._publish(messages[index])] = index
            if not in_flight and self._error is None:
                continue
            for mid, reason in self._await_answers(in_flight).items():
                reasons[in_flight.pop(mid)] = reason
            if self._error is not None:
                break
        if self._config.qos == 0 and not self._await_read():
            return [*indexes]
        return [index for index in indexes if index not in reasons]

    def _excess(self, message: OutgoingMessage) -> str | None:
        """Returns the error of a message that is too large for the broker, or None.

        The broker states its limit with MQTT 5 only, and closes the connection after a larger one.
        """
        size = packet_size(message)
        if size <= self._max_size:
            return None
        return f"expected a packet of at most {self._max_size:,} bytes, found {size:,}"

    def raise_if_lost(self, topic: str) -> None:
        """Raises the error of a connection that was lost after a message to `topic`."""
        if self._closed is not None:
            raise closed_error(self._config, topic, *self._closed)
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Disconnects."""
        self._client.disconnect()
        self._client.loop_stop()

    def _connect(self) -> None:
        config = self._config
        try:
            self._client.connect(config.host, config.port, round(config.keep_alive))
        except (OSError, TimeoutError) as error:
            raise connection_error(config, error) from None
        self._client.loop_start()
        with self._changed:
            self._changed.wait_for(lambda: self._connected or self._error, CONNECT_SECONDS)
        if not self._connected:
            self._client.loop_stop()
            raise self._error or connection_error(config, TimeoutError())

    def _publish(self, message: OutgoingMessage) -> int:
        config = self._config
        info = self._client.publish(
            message.topic, message.payload, config.qos, config.retain, self._properties(message)
        )
        return int(info.mid)

    def _await_answers(self, in_flight: dict[int, int]) -> dict[int, str | None]:
        """Waits for an answer to a message in flight. Returns all answers by message ID."""
        with self._changed:
            answered = self._changed.wait_for(
                lambda: self._error or any(mid in self._answers for mid in in_flight),
                self._config.timeout,
            )
            if not answered:
                raise Transient(
                    "could not publish: the MQTT broker did not acknowledge within timeout",
                    code="timeout",
                    hint="Increase timeout, or check the load of the broker.",
                )
            return {mid: self._answers.pop(mid) for mid in in_flight if mid in self._answers}

    def _await_read(self) -> bool:
        """Returns whether the broker has read all messages. It responds to requests in order."""
        _, mid = self._client.unsubscribe(_UNUSED_TOPIC)
        return mid in self._await_answers({mid: 0})

    def _properties(self, message: OutgoingMessage) -> Any:
        if not self._config.v5:
            return None
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        properties: Any = Properties(PacketTypes.PUBLISH)
        if message.headers:
            properties.UserProperty = list(message.headers)
        if self._config.content_type is not None:
            properties.ContentType = self._config.content_type
        if self._config.ttl is not None:
            properties.MessageExpiryInterval = round(self._config.ttl)
        return properties

    # Callbacks, on the client's thread

    def _on_connect(self, client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        with self._changed:
            if reason.is_failure:
                self._error = connack_error(self._config, reason.value, str(reason))
            else:
                self._connected = True
                limit = getattr(properties, "MaximumPacketSize", None)
                self._max_size = min(self._max_size, limit or self._max_size)
            self._changed.notify_all()

    def _on_disconnect(
        self, client: Any, data: Any, flags: Any, reason: Any, properties: Any
    ) -> None:
        with self._changed:
            if self._connected and self._error is None:
                named = flags.is_disconnect_packet_from_server
                self._closed = (str(reason), reason.value) if named else (None, 0)
            self._error = self._error or connection_error(self._config, "the connection was lost")
            self._changed.notify_all()

    def _on_unsubscribe(
        self, client: Any, data: Any, mid: int, reasons: Any, properties: Any
    ) -> None:
        with self._changed:
            self._answers[mid] = None
            self._changed.notify_all()

    def _on_publish(self, client: Any, data: Any, mid: int, reason: Any, properties: Any) -> None:
        with self._changed:
            self._answers[mid] = str(reason) if reason.value >= FAILURE else None
            self._changed.notify_all()


def _rejected(reason: str | None) -> Rejected | None:
    if reason is None:
        return None
    return Rejected(f"the broker rejected the message: {reason}", code="rejected")
