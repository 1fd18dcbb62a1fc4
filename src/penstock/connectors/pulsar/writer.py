"""Sends messages to a Pulsar cluster."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from penstock.connectors.pulsar.client import close_client, connect
from penstock.connectors.pulsar.config import PulsarSinkConfig
from penstock.connectors.pulsar.errors import translate_error, translate_errors
from penstock.core.errors import PenstockError, Rejected
from penstock.sdk.columns.times import milliseconds
from penstock.sdk.messages.acknowledged_writer import AcknowledgedWriter

if TYPE_CHECKING:
    from pulsar import Client, Producer

_MAX_PRODUCERS = 200
_MAX_PUBLISH_DELAY = 1_000
"""The longest time that a message waits for its batch, in milliseconds; `send` flushes earlier."""
_INVALID_TOPIC = "InvalidTopicName"
_REJECTIONS = {
    "MessageTooBig": "too-large",
    _INVALID_TOPIC: "invalid-topic",
    "InvalidMessage": "rejected",
}
_OF_TOPICS = frozenset(
    [_INVALID_TOPIC, "TopicNotFound", "TopicTerminated", "NotAllowedError", "AuthorizationError",
     "IncompatibleSchema"]
)  # fmt: skip
"""Errors that concern the topic of one row."""
_COMPRESSION = {"none": "NONE", "lz4": "LZ4", "zlib": "ZLib", "zstd": "ZSTD", "snappy": "SNAPPY"}


class OutgoingMessage(NamedTuple):
    """A message to send."""

    topic: str
    payload: bytes | None
    key: str | None
    ordering_key: str | None
    headers: Mapping[str, str]
    event_time: int | None


class Sender:
    """A client and its producers, kept between batches. Raises Transient and Permanent."""

    def __init__(self, config: PulsarSinkConfig) -> None:
        self._config = config
        self._clients: list[Client] = []
        self._producers: OrderedDict[str, Producer] = OrderedDict()
        weakref.finalize(self, _close_clients, self._clients)

    def check(self, topic: str | None) -> None:
        """Looks up the topic. Raises Transient or Permanent."""
        with translate_errors(self._config, self._action):
            self._client().get_topic_partitions(topic or "public/default/any")

    def send(self, messages: Sequence[OutgoingMessage]) -> list[Rejected | None]:
        """Returns the outcome of each message once the broker has confirmed or rejected all."""
        results = Results(len(messages))
        try:
            with translate_errors(self._config, self._action):
                for index, message in enumerate(messages):
                    self._send(message, partial(results.put, index))
                for topic in {message.topic for message in messages} & self._producers.keys():
                    self._producers[topic].flush()
            results.wait(2 * self._config.timeout)
            return [self._outcome(name) for name in results.names]
        except PenstockError:
            self.close()
            raise

    def close(self) -> None:
        """Closes the client and its producers."""
        self._producers.clear()
        _close_clients(self._clients)

    @property
    def _action(self) -> str:
        return f'send to topic "{self._config.topic}"'

    def _client(self) -> Client:
        if not self._clients:
            self._clients.append(connect(self._config))
        return self._clients[0]

    def _send(self, message: OutgoingMessage, put: Callable[[str], None]) -> None:
        producer = self._producer(message.topic)
        if isinstance(producer, str):
            return put(producer)
        delay = self._config.delay
        producer.send_async(
            message.payload, lambda result, _: put(result.name),
            properties=dict(message.headers), partition_key=message.key,
            ordering_key=message.ordering_key, event_timestamp=message.event_time,
            deliver_after=None if delay is None else timedelta(seconds=delay),
        )  # fmt: skip
        return None

    def _producer(self, topic: str) -> Producer | str:
        """Returns the producer of a topic, or the error of the topic of a row."""
        import pulsar

        if topic not in self._producers:
            if len(self._producers) >= _MAX_PRODUCERS:
                _, oldest = self._producers.popitem(last=False)
                oldest.flush()
                oldest.close()
            try:
                producer = self._client().create_producer(topic, **self._options())
            except pulsar.PulsarException as error:
                name = type(error).__name__
                if self._config.topic.constant is not None or name not in _OF_TOPICS:
                    raise
                return name
            self._producers[topic] = producer
        self._producers.move_to_end(topic)
        return self._producers[topic]

    def _options(self) -> dict[str, Any]:
        from pulsar import BatchingType, CompressionType

        config, batching = self._config, self._config.batching
        options: dict[str, Any] = {
            "send_timeout_millis": round(config.timeout * 1000),
            "compression_type": getattr(CompressionType, _COMPRESSION[config.compression]),
            "block_if_queue_full": True,
            "chunking_enabled": config.chunking,
        }
        if not batching:
            return options
        batching_type = BatchingType.KeyBased if batching.by_key else BatchingType.Default
        return {
            **options,
            "batching_enabled": True,
            "batching_max_messages": batching.max_records,
            "batching_max_allowed_size_in_bytes": batching.max_size,
            "batching_max_publish_delay_ms": _MAX_PUBLISH_DELAY,
            "max_pending_messages": 2 * max(1000, batching.max_records),
            "max_pending_messages_across_partitions": 1_000_000,
            "batching_type": batching_type,
        }

    def _outcome(self, name: str) -> Rejected | None:
        if name == "Ok":
            return None
        if name in _REJECTIONS:
            return Rejected(f"the broker rejected the message: {name}", code=_REJECTIONS[name])
        if name in _OF_TOPICS and self._config.topic.constant is None:
            return Rejected(f"the broker rejected the topic: {name}", code="rejected")
        raise translate_error(self._config, self._action, name)


def _close_clients(clients: list[Client]) -> None:
    while clients:
        close_client(clients.pop())


class Results:
    """The results of messages, reported by threads of the client library."""

    def __init__(self, count: int) -> None:
        self.names = ["Timeout"] * count
        self._pending = count
        self._changed = threading.Condition()

    def put(self, index: int, name: str) -> None:
        """Stores the result of a message."""
        with self._changed:
            self.names[index] = name
            self._pending -= 1
            self._changed.notify()

    def wait(self, seconds: float) -> None:
        """Waits for all results, at most `seconds`."""
        with self._changed:
            self._changed.wait_for(lambda: not self._pending, seconds)


class PulsarWriter(AcknowledgedWriter[OutgoingMessage]):
    """Sends the rows of a partition."""

    def __init__(self, sender: Sender, config: PulsarSinkConfig) -> None:
        self._sender, self._config = sender, config

    def send(self, messages: Sequence[OutgoingMessage]) -> list[Rejected | None]:
        return self._sender.send(messages)

    def messages(self, rows: pa.RecordBatch, payloads: Any) -> list[OutgoingMessage | Rejected]:
        config = self._config
        nulls: list[None] = [None] * rows.num_rows
        topics = config.topic.render(rows)
        keys = nulls if config.key is None else config.key.render(rows)
        ordering_keys = nulls if config.ordering_key is None else config.ordering_key.render(rows)
        headers = {name: template.render(rows) for name, template in config.headers.items()}
        column = config.event_time_column
        times = nulls if column is None else milliseconds(rows.column(column))
        messages: list[OutgoingMessage | Rejected] = []
        for index, (topic, payload) in enumerate(zip(topics, payloads.to_pylist(), strict=True)):
            time = times[index]
            if topic is None:
                messages.append(Rejected("the topic is null", code="invalid-topic"))
            elif time is not None and time < 0:
                message = "expected an event time after 1970-01-01T00:00:00Z"
                messages.append(Rejected(message, code="invalid-timestamp"))
            else:
                texts = {
                    name: text
                    for name, values in headers.items()
                    if (text := values[index]) is not None
                }
                keys_of_row = keys[index], ordering_keys[index]
                messages.append(OutgoingMessage(topic, payload, *keys_of_row, texts, time))
        return messages
