"""The sink of Pulsar: rows sent to topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import pyarrow as pa
from pydantic import Field, model_validator

from penstock.connectors.pulsar.connection import ConnectionConfig
from penstock.connectors.pulsar.sending import Outgoing, Sender
from penstock.core.errors import raise_all
from penstock.sdk import (
    BatchId,
    ByteSize,
    Capability,
    Config,
    Duration,
    Rejected,
    Sink,
    Writer,
)
from penstock.sdk.kit.confirmed import ConfirmedWriter
from penstock.sdk.kit.named import need_column
from penstock.sdk.kit.template import Template
from penstock.sdk.kit.times import milliseconds


class Batching(Config):
    """Messages that are sent, and kept, together."""

    max_messages: int = Field(default=1000, ge=2)
    """The most messages of an entry."""
    max_size: ByteSize = Field(default=128 << 10, ge=1)
    """The most bytes of an entry."""
    by_key: bool = False
    """Whether only messages with the same key are sent together, as `key_shared` subscriptions
    need it."""


class PulsarSinkConfig(ConnectionConfig):
    topic: Template
    """The topic. `{column}` in it is replaced by the row's value: `orders-{country}`."""
    key: Template | None = None
    """The key, which chooses the partition; `{column}` in it is replaced by the row's value."""
    ordering_key: Template | None = None
    """The key by which `key_shared` subscriptions choose the consumer, if it is another."""
    properties: dict[str, Template] = {}
    """Properties; `{column}` in them is replaced by the row's value."""
    event_time: str | None = None
    """The column with the time of the event."""
    delay: Duration | None = Field(default=None, gt=0)
    """How long messages are held back from shared subscriptions."""
    batching: Literal[False] | Batching = Batching()
    """How messages are sent together; `false` sends each by itself."""
    chunking: bool = False
    """Whether messages that are too large for the broker are sent in pieces; needs
    `batching: false`."""
    compression: Literal["none", "lz4", "zlib", "zstd", "snappy"] = "none"
    """How messages are compressed."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.chunking and self.batching is not False:
            raise ValueError("chunking needs batching: false")
        return self


class PulsarSink(Sink[PulsarSinkConfig]):
    """Sends rows to topics of Pulsar.

    A message that the broker does not take because of its size or its topic's name is a dead
    letter.

    ```yaml
    type: pulsar
    from: orders
    url: pulsar://localhost:6650
    topic: persistent://public/default/orders
    key: "{customer}"
    properties: {country: "{country}"}
    ```
    """

    acknowledges = "the broker has confirmed each message"
    capabilities = frozenset({Capability.BYTES, Capability.ORDERED})
    extra = "pulsar"
    clients = ("pulsar",)

    def topic(self) -> str | None:
        return self.config.topic.constant

    def accepts(self, columns: pa.Schema) -> None:
        super().accepts(columns)
        config = self.config
        texts = [
            *((("properties", name), text) for name, text in config.properties.items()),
            *(((name,), getattr(config, name)) for name in ("topic", "key", "ordering_key")),
        ]
        mistakes = [
            each for option, text in texts if text is not None
            for each in text.mistakes(columns, *option)
        ]  # fmt: skip
        if config.event_time is not None:
            mistakes += need_column(
                config.event_time, columns, "event_time", right=pa.types.is_timestamp,
                expected="expected a TIMESTAMP",
            )  # fmt: skip
        raise_all(mistakes)

    def check(self) -> None:
        sender = self.open()
        try:
            sender.check(self.config.topic.constant)
        finally:
            sender.close()

    def open(self) -> Sender:
        return Sender(self.config)

    def writer(self, client: Any, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        return PulsarWriter(client, self.config)


class PulsarWriter(ConfirmedWriter[Outgoing]):
    def __init__(self, sender: Sender, config: PulsarSinkConfig) -> None:
        self._sender, self._config = sender, config

    def send(self, messages: Sequence[Outgoing]) -> list[Rejected | None]:
        return self._sender.send(messages)

    def messages(self, rows: pa.RecordBatch, payloads: Any) -> list[Outgoing | Rejected]:
        config = self._config
        nothing: list[None] = [None] * rows.num_rows
        topics = config.topic.fill(rows)
        keys = nothing if config.key is None else config.key.fill(rows)
        ordering = nothing if config.ordering_key is None else config.ordering_key.fill(rows)
        properties = {name: text.fill(rows) for name, text in config.properties.items()}
        event_time = config.event_time
        times = nothing if event_time is None else milliseconds(rows.column(event_time))
        return [
            Rejected("the topic is null", code="topic") if topic is None else Outgoing(
                topic, payload, keys[at], ordering[at],
                {k: text for k, texts in properties.items() if (text := texts[at]) is not None},
                times[at],
            )
            for at, (topic, payload) in enumerate(zip(topics, payloads.to_pylist(), strict=True))
        ]  # fmt: skip
