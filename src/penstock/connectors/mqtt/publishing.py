"""Messages on their way to the broker."""

from __future__ import annotations

import threading
import uuid
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.connectors.mqtt.connection import CONNECT_SECONDS
from penstock.core.secret import revealed
from penstock.sdk import Permanent, Rejected, Transient

if TYPE_CHECKING:
    from penstock.connectors.mqtt.sink import MqttSinkConfig

_FAILED = 0x80
_NOTHING = "penstock/nothing"
"""What nobody has subscribed to."""


class Outgoing(NamedTuple):
    """A message to publish, with its user properties."""

    topic: str
    payload: bytes
    properties: Sequence[tuple[str, str]]


class Publisher:
    """A connection to the broker, kept between batches. Raises Transient or Permanent."""

    def __init__(self, config: MqttSinkConfig) -> None:
        self._config = config
        self._link = Link(config)

    def send(self, messages: Sequence[Outgoing]) -> list[Rejected | None]:
        """Returns when the broker has acknowledged each message, or refused it for good.

        With QoS 0, which has no acknowledgements, when it has answered a request after them. A
        broker that closes the connection after a refusal is connected to again.
        """
        answers: dict[int, str | None] = {}
        rest = list(range(len(messages)))
        while rest:
            left = self._link.send(messages, rest, answers)
            if left:
                if len(left) == len(rest):
                    self._link.need()
                self._link.close()
                self._link = Link(self._config)
            rest = left
        return [_rejected(answers[at]) for at in range(len(messages))]

    def close(self) -> None:
        """Leaves."""
        self._link.close()


class Link:
    """One connection, from when it is made until it is lost."""

    def __init__(self, config: MqttSinkConfig) -> None:
        from paho.mqtt import client as paho

        self._config = config
        self._changed = threading.Condition()
        self._connected = False
        self._lost: Transient | Permanent | None = None
        self._answers: dict[int, str | None] = {}
        five = config.version == "5"
        name = f"{config.client_id or 'penstock'}-{uuid.uuid4().hex[:12]}"
        client: Any = paho.Client(
            paho.CallbackAPIVersion.VERSION2, name,
            protocol=paho.MQTTv5 if five else paho.MQTTv311, reconnect_on_failure=False,
        )  # fmt: skip
        client.on_connect = self._on_connect
        client.on_disconnect = self._on_disconnect
        client.on_publish = self._on_publish
        client.on_unsubscribe = self._on_unsubscribe
        client.connect_timeout = CONNECT_SECONDS
        client.max_inflight_messages_set(config.in_flight)
        if config.username is not None:
            client.username_pw_set(config.username, revealed(config.password))
        if (context := config.context()) is not None:
            client.tls_set_context(context)
        self._client = client
        self._connect()

    def send(
        self, messages: Sequence[Outgoing], wanted: Sequence[int], answers: dict[int, str | None]
    ) -> list[int]:
        """Publishes those messages. Returns the ones that were not answered before it was lost.

        `answers` gets for each of the others why it was refused, or None.
        """
        queue = deque(wanted)
        under_way: dict[int, int] = {}
        while queue or under_way:
            while queue and len(under_way) < self._config.in_flight and self._lost is None:
                at = queue.popleft()
                under_way[self._publish(messages[at])] = at
            for mid, why in self._answered(under_way).items():
                answers[under_way.pop(mid)] = why
            if self._lost is not None:
                break
        if self._config.qos == 0 and not self._read():
            return [*wanted]
        return [at for at in wanted if at not in answers]

    def need(self) -> None:
        """Raises why it was lost, if it was."""
        if self._lost is not None:
            raise self._lost

    def close(self) -> None:
        """Leaves."""
        self._client.disconnect()
        self._client.loop_stop()

    def _connect(self) -> None:
        config = self._config
        try:
            self._client.connect(config.host, config.port, round(config.keep_alive))
        except (OSError, TimeoutError) as error:
            raise config.unreachable(error) from None
        self._client.loop_start()
        with self._changed:
            self._changed.wait_for(lambda: self._connected or self._lost, CONNECT_SECONDS)
        if not self._connected:
            self._client.loop_stop()
            raise self._lost or config.unreachable(TimeoutError())

    def _publish(self, message: Outgoing) -> int:
        config = self._config
        sent = self._client.publish(
            message.topic, message.payload, config.qos, config.retain, self._properties(message)
        )
        return int(sent.mid)

    def _answered(self, under_way: dict[int, int]) -> dict[int, str | None]:
        """The answers to those that are under way: waits for one, and takes all that are there."""
        with self._changed:
            came = self._changed.wait_for(
                lambda: self._lost or any(mid in self._answers for mid in under_way),
                self._config.timeout,
            )
            if not came:
                raise Transient(
                    "the MQTT broker does not acknowledge what is published", code="timeout",
                    hint="timeout says how long to wait",
                )  # fmt: skip
            return {mid: self._answers.pop(mid) for mid in under_way if mid in self._answers}

    def _read(self) -> bool:
        """Whether the broker has read all that was sent: it answers requests in their order."""
        _, mid = self._client.unsubscribe(_NOTHING)
        return mid in self._answered({mid: 0})

    def _properties(self, message: Outgoing) -> Any:
        if self._config.version != "5":
            return None
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        found: Any = Properties(PacketTypes.PUBLISH)
        if message.properties:
            found.UserProperty = list(message.properties)
        if self._config.content_type is not None:
            found.ContentType = self._config.content_type
        if self._config.message_expiry is not None:
            found.MessageExpiryInterval = round(self._config.message_expiry)
        return found

    # On the client's own thread

    def _on_connect(self, client: Any, data: Any, flags: Any, reason: Any, given: Any) -> None:
        with self._changed:
            if reason.is_failure:
                self._lost = self._config.refused(reason.value, str(reason))
            else:
                self._connected = True
            self._changed.notify_all()

    def _on_disconnect(self, client: Any, data: Any, flags: Any, reason: Any, given: Any) -> None:
        with self._changed:
            self._lost = self._lost or self._config.unreachable("the connection was lost")
            self._changed.notify_all()

    def _on_unsubscribe(self, client: Any, data: Any, mid: int, reasons: Any, given: Any) -> None:
        with self._changed:
            self._answers[mid] = None
            self._changed.notify_all()

    def _on_publish(self, client: Any, data: Any, mid: int, reason: Any, given: Any) -> None:
        with self._changed:
            self._answers[mid] = str(reason) if reason.value >= _FAILED else None
            self._changed.notify_all()


def _rejected(why: str | None) -> Rejected | None:
    return None if why is None else Rejected(f"the broker refuses it: {why}", code="refused")
