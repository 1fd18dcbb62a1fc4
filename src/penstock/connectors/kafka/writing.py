"""Producing in a task: the producers that a process keeps, and a writer of one partition."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from penstock.connectors.kafka.addressing import Addresses, Addressing
from penstock.connectors.kafka.client import producer
from penstock.connectors.kafka.connection import ConnectionConfig
from penstock.connectors.kafka.faults import fault, silent, told
from penstock.connectors.kafka.topics import Limits
from penstock.core.errors import PenstockError, Rejected
from penstock.sdk import Failure, Receipt, Writer

DELIVERY_SECONDS = 60
"""How long a record is tried to be delivered."""
OVERHEAD = 128
"""What a record takes beside its key, value and headers, generously."""
_STEP = 0.5
_DISCARDED = frozenset(["_PURGE_QUEUE", "_PURGE_INFLIGHT"])
"""Of records that were discarded; the client may tell of them when others are on their way."""


class Outbox:
    """A producer, and what became of the records given to it; `limits` are those of a topic."""

    def __init__(
        self,
        config: ConnectionConfig,
        properties: Mapping[str, Any],
        limits: Callable[[str], Limits],
        shown: str,
    ) -> None:
        self.doing, self._limits = f"write to {shown}", limits
        self.failed: Any = None
        self._known: dict[str, int] = {}
        own = {"on_delivery": self._reported, "delivery.report.only.error": True}
        self.producer, self.notes = producer(config, {**properties, **own})

    def _reported(self, error: Any, message: Any) -> None:
        if error is not None and error.name() not in _DISCARDED and self.failed is None:
            self.failed = error

    def close(self) -> None:
        """Lets go of the connections; what has not been sent yet is dropped."""
        self.producer.purge()
        del self.producer

    def send(self, values: Sequence[bytes | None], to: Addresses) -> list[Failure]:
        """Gives records to the producer. Returns those that cannot be sent."""
        if to.plain is None:
            return self.judge(values, to, send=True)
        from confluent_kafka import KafkaException

        topic, produce = to.plain, self.producer.produce
        plenty, refused = self._limits(topic).size // 2, []
        for index, (value, key) in enumerate(zip(values, to.each_key(), strict=False)):
            try:
                if value is None or len(value) < plenty:
                    produce(topic, value, key)
                    continue
            except (BufferError, KafkaException):
                pass
            refused += self._one(index, value, {"topic": topic, "key": key}, True)
        return refused

    def judge(
        self, values: Sequence[bytes | None], to: Addresses, send: bool = False
    ) -> list[Failure]:
        """The records that cannot be sent."""
        refused = to.refused()
        skip = {failure.index for failure in refused}
        for index, value in enumerate(values):
            if index not in skip:
                refused += self._one(index, value, to.arguments(index), send)
        return refused

    def _one(
        self, index: int, value: bytes | None, to: dict[str, Any], send: bool
    ) -> list[Failure]:
        size, limits = _size(value, to), self._limits(to["topic"])
        if size > limits.size:
            return [Failure(index, _too_large(size, limits.size))]
        if "timestamp" in to and not limits.take(to["timestamp"]):
            return [Failure(index, _untimely())]
        if to.get("partition", 0) and to["partition"] >= self._partitions(to["topic"]):
            return [Failure(index, _no_partition(to))]
        if send:
            self._produce(value, to)
        return []

    def _produce(self, value: bytes | None, to: dict[str, Any]) -> None:
        from confluent_kafka import KafkaException

        until = time.monotonic() + DELIVERY_SECONDS
        while True:
            try:
                self.producer.produce(value=value, **to)
                return
            except BufferError:
                self.producer.poll(_STEP)
                self._raise_failed()
                if time.monotonic() > until:
                    raise silent(self.doing, self.notes) from None
            except KafkaException as raised:
                raise fault(raised.args[0], self.doing, self.notes) from raised

    def _partitions(self, topic: str) -> int:
        """How many a topic has, as of the first such record of the batch."""
        if topic not in self._known:
            with told(self.doing, self.notes):
                found = self.producer.list_topics(topic, DELIVERY_SECONDS)
            self._known[topic] = len(found.topics[topic].partitions)
        return self._known[topic]

    def flush(self) -> None:
        """Waits until all records are delivered. Raises Transient or Permanent if one is not."""
        self._known.clear()
        until = time.monotonic() + DELIVERY_SECONDS
        while self.producer.flush(_STEP):
            self._raise_failed()
            if time.monotonic() > until:
                raise silent(self.doing, self.notes)
        self._raise_failed()

    def discard(self) -> None:
        """Forgets what has not been delivered yet."""
        with told(self.doing, self.notes):
            self.producer.purge()
            self.producer.flush(_STEP)
        self.failed = None

    def _raise_failed(self) -> None:
        self.notes.raise_refused(self.doing)
        if self.failed is not None:
            failed, self.failed = self.failed, None
            raise fault(failed, self.doing, self.notes)


def _size(value: bytes | None, to: Mapping[str, Any]) -> int:
    """What a record takes in a topic, at most."""
    size = OVERHEAD + len(value or b"") + len(to.get("key") or b"")
    return size + sum(len(name) + len(text or b"") for name, text in to.get("headers") or ())


def _too_large(size: int, limit: int) -> Rejected:
    return Rejected(
        f"the record has {size:,} bytes, and the topic takes {limit:,}",
        code="too-large",
        hint="the topic's max.message.bytes says how much",
    )


def _untimely() -> Rejected:
    return Rejected(
        "the record's time is further from now than the topic takes",
        code="invalid-timestamp",
        hint="the topic's message.timestamp.before.max.ms and after.max.ms say how far",
    )


def _no_partition(to: Mapping[str, Any]) -> Rejected:
    return Rejected(
        f'topic "{to["topic"]}" has no partition {to["partition"]}', code="invalid-partition"
    )


class KafkaWriter(Writer):
    """Writes one partition of a batch, at least once."""

    def __init__(self, outbox: Outbox, addressing: Addressing) -> None:
        self._outbox, self._addressing = outbox, addressing

    def write(
        self, rows: pa.RecordBatch, payloads: pa.BinaryArray | None = None
    ) -> Sequence[Failure]:
        assert payloads is not None
        failures = self._outbox.send(payloads.to_pylist(), self._addressing.of(rows))
        self._outbox.producer.poll(0)
        return failures

    def commit(self) -> Receipt:
        with told(self._outbox.doing, self._outbox.notes):
            self._outbox.flush()
        return {}

    def abort(self) -> None:
        with suppress(PenstockError):
            self._outbox.discard()
