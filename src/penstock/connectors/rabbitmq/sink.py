"""The sink of exchanges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import pyarrow as pa
from pydantic import Field, model_validator

from penstock.connectors.rabbitmq.connection import ConnectionConfig
from penstock.connectors.rabbitmq.declaration import ExchangeDeclaration
from penstock.connectors.rabbitmq.publishing import Outgoing, Publisher
from penstock.core.errors import raise_all
from penstock.sdk import (
    BatchId,
    Capability,
    Duration,
    Rejected,
    Sink,
    Writer,
)
from penstock.sdk.kit.confirmed import ConfirmedWriter
from penstock.sdk.kit.template import Template

LONGEST = 255
"""The bytes of a name or a routing key, at most."""


class RabbitmqSinkConfig(ConnectionConfig):
    exchange: Template = Template("")
    """The exchange; by default the one whose routing key is a queue's name. `{column}` in it is
    replaced by the row's value."""
    routing_key: Template = Template("")
    """The routing key. `{column}` in it is replaced by the row's value: `order.{country}`."""
    headers: dict[str, Template] = {}
    """Headers; `{column}` in them is replaced by the row's value, and null leaves one out."""
    message_id: Template | None = None
    """The message's own id, from which a receiver knows a repeated one."""
    content_type: str | None = None
    """What the payload is, as in `application/json`."""
    type: Template | None = None
    """What kind of message it is, for those who receive it."""
    priority: int | None = Field(default=None, ge=0, le=255)
    """Queues that know priorities hand out the highest first."""
    expiration: Duration | None = Field(default=None, ge=0)
    """How long a queue keeps the message."""
    persistent: bool = True
    """Whether durable queues keep the message over a restart of the broker."""
    mandatory: bool = True
    """Whether a message that no queue gets is a dead letter. Otherwise it is lost."""
    declare: ExchangeDeclaration | None = None
    """Makes the exchange if it is not there: `{}`, or what it is to be."""
    in_flight: int = Field(default=256, ge=1)
    """How many messages are sent before the first of them is confirmed."""

    @model_validator(mode="after")
    def _somewhere(self) -> Self:
        if not self.exchange and not self.routing_key:
            raise ValueError("give exchange, or routing_key with the name of a queue")
        if self.declare is not None and not self.exchange.constant:
            raise ValueError("declare needs exchange, without columns in it")
        return self

    def templates(self) -> Iterator[tuple[tuple[str, ...], Template]]:
        """Those that are filled in, each with the option that has it."""
        for name in ("exchange", "routing_key", "message_id", "type"):
            if (text := getattr(self, name)) is not None:
                yield (name,), text
        for name, text in self.headers.items():
            yield ("headers", name), text


class RabbitmqSink(Sink[RabbitmqSinkConfig]):
    """Publishes rows to exchanges of a RabbitMQ broker, or straight to a queue or stream.

    Messages that no queue gets (`mandatory`), and those that the broker refuses by themselves,
    become dead letters.

    ```yaml
    type: rabbitmq
    from: orders
    url: amqps://broker.example.com
    exchange: shop
    routing_key: order.{country}
    headers: {source: penstock, customer: "{customer}"}
    declare: {type: topic}
    ```
    """

    acknowledges = "the broker has confirmed each message"
    capabilities = frozenset({Capability.BYTES, Capability.ORDERED})
    extra = "rabbitmq"
    clients = ("aio_pika",)

    def accepts(self, columns: pa.Schema) -> None:
        super().accepts(columns)
        raise_all(
            mistake
            for option, text in self.config.templates()
            for mistake in text.mistakes(columns, *option)
        )

    def check(self) -> None:
        Publisher(self.config, declares=False).close()

    def open(self) -> Publisher:
        return Publisher(self.config)

    def writer(self, client: Any, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        return RabbitmqWriter(client, self.config)


class RabbitmqWriter(ConfirmedWriter[Outgoing]):
    def __init__(self, publisher: Publisher, config: RabbitmqSinkConfig) -> None:
        self._publisher, self._config = publisher, config

    def messages(self, rows: pa.RecordBatch, payloads: Any) -> Iterator[Outgoing | Rejected]:
        filled = {option: text.fill(rows) for option, text in self._config.templates()}
        for at, payload in enumerate(payloads.to_pylist()):
            texts = {option: each[at] for option, each in filled.items()}
            mistake = _mistake(texts)
            if mistake is not None:
                yield Rejected(mistake, code="address")
            else:
                yield _outgoing(payload, texts)

    def send(self, messages: Sequence[Outgoing]) -> list[Rejected | None]:
        return self._publisher.send(messages)


Texts = Mapping[tuple[str, ...], str | None]


def _mistake(texts: Texts) -> str | None:
    """Why a message with these cannot be; None if it can."""
    for option, text in texts.items():
        name = ".".join(option)
        if text is None and option in (("exchange",), ("routing_key",)):
            return f"{name} is null"
        if text is not None and len(option) == 1 and len(text.encode()) > LONGEST:
            return f"{name} has more than {LONGEST} bytes"
    return None


def _outgoing(payload: bytes | None, texts: Texts) -> Outgoing:
    headers = {option[1]: text for option, text in texts.items() if len(option) > 1}
    return Outgoing(
        exchange=texts[("exchange",)] or "",
        routing_key=texts[("routing_key",)] or "",
        payload=payload or b"",
        headers={name: text for name, text in headers.items() if text is not None},
        message_id=texts.get(("message_id",)),
        type=texts.get(("type",)),
    )
