"""Messages on their way to a broker."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.connectors.pulsar.client import closed
from penstock.connectors.pulsar.connection import connected
from penstock.connectors.pulsar.faults import fault, faults
from penstock.core.errors import PenstockError, Rejected

if TYPE_CHECKING:
    from pulsar import Client, Producer

    from penstock.connectors.pulsar.sink import PulsarSinkConfig

_TOPICS = 200
"""Producers that are kept."""
_LONGEST = 1_000
"""How long a message may wait for others, in milliseconds, before `send` has all."""
_NO_TOPIC = "InvalidTopicName"
_REFUSED = {"MessageTooBig": "too-large", _NO_TOPIC: "topic", "InvalidMessage": "refused"}
_COMPRESSION = {"none": "NONE", "lz4": "LZ4", "zlib": "ZLib", "zstd": "ZSTD", "snappy": "SNAPPY"}


class Outgoing(NamedTuple):
    """A message to send."""

    topic: str
    payload: bytes | None
    key: str | None
    ordering_key: str | None
    properties: Mapping[str, str]
    event_time: int | None


class Sender:
    """A client and its producers, kept between batches. Raises Transient or Permanent."""

    def __init__(self, config: PulsarSinkConfig) -> None:
        self._config = config
        self._made: list[Client] = []
        self._producers: OrderedDict[str, Producer] = OrderedDict()
        weakref.finalize(self, _leave, self._made)

    def check(self, topic: str | None) -> None:
        """That the broker lets us in, and may have the topic."""
        with faults(self._config, self._doing):
            self._connected().get_topic_partitions(topic or "public/default/any")

    def send(self, messages: Sequence[Outgoing]) -> list[Rejected | None]:
        """Returns when the broker has each message, or refuses it for good."""
        results = Results(len(messages))
        try:
            with faults(self._config, self._doing):
                for at, message in enumerate(messages):
                    self._start(message, partial(results.put, at))
                for topic in {message.topic for message in messages} & self._producers.keys():
                    self._producers[topic].flush()
            results.wait(2 * self._config.timeout)
            return [self._judged(name) for name in results.names]
        except PenstockError:
            self.close()
            raise

    def close(self) -> None:
        """Leaves."""
        self._producers.clear()
        _leave(self._made)

    @property
    def _doing(self) -> str:
        return f'send to topic "{self._config.topic}"'

    def _connected(self) -> Client:
        if not self._made:
            self._made.append(connected(self._config))
        return self._made[0]

    def _start(self, message: Outgoing, put: Callable[[str], None]) -> None:
        producer = self._producer(message.topic)
        if producer is None:
            return put(_NO_TOPIC)
        delay = self._config.delay
        producer.send_async(
            message.payload, lambda result, _: put(result.name),
            properties=dict(message.properties), partition_key=message.key,
            ordering_key=message.ordering_key, event_timestamp=message.event_time,
            deliver_after=None if delay is None else timedelta(seconds=delay),
        )  # fmt: skip
        return None

    def _producer(self, topic: str) -> Producer | None:
        """None where the topic cannot be, and is only one of many."""
        import pulsar

        if topic not in self._producers:
            if len(self._producers) >= _TOPICS:
                _, oldest = self._producers.popitem(last=False)
                oldest.flush()
                oldest.close()
            try:
                made = self._connected().create_producer(topic, **self._options())
            except pulsar.exceptions.InvalidTopicName:
                if self._config.topic.constant is not None:
                    raise
                return None
            self._producers[topic] = made
        self._producers.move_to_end(topic)
        return self._producers[topic]

    def _options(self) -> dict[str, Any]:
        from pulsar import BatchingType, CompressionType

        config, batching = self._config, self._config.batching
        given: dict[str, Any] = {
            "send_timeout_millis": round(config.timeout * 1000),
            "compression_type": getattr(CompressionType, _COMPRESSION[config.compression]),
            "block_if_queue_full": True,
            "chunking_enabled": config.chunking,
        }
        if not batching:
            return given
        by_key = BatchingType.KeyBased if batching.by_key else BatchingType.Default
        return {
            **given,
            "batching_enabled": True,
            "batching_max_messages": batching.max_messages,
            "batching_max_allowed_size_in_bytes": batching.max_size,
            "batching_max_publish_delay_ms": _LONGEST,
            "max_pending_messages": 2 * max(1000, batching.max_messages),
            "max_pending_messages_across_partitions": 1_000_000,
            "batching_type": by_key,
        }

    def _judged(self, name: str) -> Rejected | None:
        if name == "Ok":
            return None
        if name in _REFUSED:
            return Rejected(f"Pulsar does not take it: {name}", code=_REFUSED[name])
        raise fault(self._config, self._doing, name)


def _leave(made: list[Client]) -> None:
    while made:
        closed(made.pop())


class Results:
    """What became of messages, as the client's own threads tell it."""

    def __init__(self, count: int) -> None:
        self.names = ["Timeout"] * count
        self._left = count
        self._changed = threading.Condition()

    def put(self, at: int, name: str) -> None:
        """What became of one of them."""
        with self._changed:
            self.names[at] = name
            self._left -= 1
            self._changed.notify()

    def wait(self, seconds: float) -> None:
        """Returns when all are known, or after so long."""
        with self._changed:
            self._changed.wait_for(lambda: not self._left, seconds)
