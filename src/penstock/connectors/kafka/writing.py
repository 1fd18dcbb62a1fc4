"""Producing in a task: the producers that a process keeps, and a writer of one partition."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.connectors.kafka.addressing import Addresses, Addressing
from penstock.connectors.kafka.client import producer
from penstock.connectors.kafka.connection import ConnectionConfig
from penstock.connectors.kafka.faults import fault, told
from penstock.core.errors import Rejected, Transient
from penstock.sdk import Failure, Receipt, Writer

DELIVERY_SECONDS = 60
"""How long a record is tried to be delivered."""
OVERHEAD = 128
"""What a record takes beside its key, value and headers, generously."""
_STEP = 0.5


class Outbox:
    """A producer, and what became of the records given to it; `limit` is that of a topic."""

    def __init__(
        self,
        config: ConnectionConfig,
        properties: Mapping[str, Any],
        limit: Callable[[str], int],
        shown: str,
    ) -> None:
        self.doing, self._limit = f"write to {shown}", limit
        self.failed: Any = None
        self._known: set[str] = set()
        own = {"on_delivery": self._reported, "delivery.report.only.error": True}
        self.producer, self.notes = producer(config, {**properties, **own})

    def _reported(self, error: Any, message: Any) -> None:
        if error is not None and self.failed is None:
            self.failed = error

    def send(self, values: Sequence[bytes | None], to: Addresses) -> list[Failure]:
        """Gives records to the producer. Returns those that cannot be sent."""
        refused = to.refused()
        skip = {failure.index for failure in refused}
        if to.plain is not None and not skip:
            refused += self._plainly(values, to.plain, to.each_key())
        else:
            for index, value in enumerate(values):
                if index not in skip:
                    refused += self._one(index, value, to.arguments(index))
        return refused

    def _plainly(self, values: Sequence[bytes | None], topic: str, keys: Any) -> list[Failure]:
        from confluent_kafka import KafkaException

        produce, most, refused = self.producer.produce, self._limit(topic) // 2, []
        for index, (value, key) in enumerate(zip(values, keys, strict=False)):
            try:
                if value is None or len(value) < most:
                    produce(topic, value, key)
                    continue
            except (BufferError, KafkaException):
                pass
            refused += self._one(index, value, {"topic": topic, "key": key})
        return refused

    def _one(self, index: int, value: bytes | None, to: dict[str, Any]) -> list[Failure]:
        from confluent_kafka import KafkaException

        size, limit = _size(value, to), self._limit(to["topic"])
        if size > limit:
            return [Failure(index, _too_large(size, limit))]
        if "partition" in to:
            self._know(to["topic"])
        until = time.monotonic() + DELIVERY_SECONDS
        while True:
            try:
                self.producer.produce(value=value, **to)
                return []
            except BufferError:
                self.producer.poll(_STEP)
                self._raise_failed()
                if time.monotonic() > until:
                    raise self._stuck() from None
            except KafkaException as raised:
                error = raised.args[0]
                if error.name() == "_UNKNOWN_PARTITION":
                    return [Failure(index, _no_partition(to))]
                raise fault(error, self.doing, self.notes) from raised

    def _know(self, topic: str) -> None:
        """From now on the producer refuses partitions that the topic has not."""
        if topic not in self._known:
            with told(self.doing, self.notes):
                self.producer.list_topics(topic, DELIVERY_SECONDS)
            self._known.add(topic)

    def flush(self) -> None:
        """Waits until all records are delivered. Raises Transient or Permanent if one is not."""
        until = time.monotonic() + DELIVERY_SECONDS
        while self.producer.flush(_STEP):
            self._raise_failed()
            if time.monotonic() > until:
                raise self._stuck()
        self._raise_failed()

    def discard(self) -> None:
        """Forgets what has not been delivered yet."""
        self.producer.purge()
        self.producer.flush(_STEP)
        self.failed = None

    def _raise_failed(self) -> None:
        self.notes.raise_refused(self.doing)
        if self.failed is not None:
            failed, self.failed = self.failed, None
            raise fault(failed, self.doing, self.notes)

    def _stuck(self) -> Transient:
        return Transient(
            f"could not {self.doing}: no answer from Kafka at {self.notes.address}",
            code="unreachable",
            hint="is it running?",
        )


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
        self._outbox.discard()
