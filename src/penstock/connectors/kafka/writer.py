"""Writes records in a task."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from penstock.connectors.kafka.administration import TopicLimits
from penstock.connectors.kafka.client import create_producer
from penstock.connectors.kafka.config import ConnectionConfig
from penstock.connectors.kafka.errors import translate_error, translate_errors, unreachable
from penstock.connectors.kafka.records import RecordFields, RecordMapping
from penstock.core.errors import PenstockError, Rejected
from penstock.sdk import Failure, Receipt, Writer, report_retry

DELIVERY_TIMEOUT = 60
"""The longest time to deliver a record, in seconds."""
RECORD_OVERHEAD = 128
"""An upper bound of the bytes of a record besides its key, value and headers."""
_POLL_TIMEOUT = 0.5
_PURGED = frozenset(["_PURGE_QUEUE", "_PURGE_INFLIGHT"])
"""Errors of discarded records, which the client may report during a later batch."""


class RecordProducer:
    """A producer that checks records and tracks their delivery. Raises Transient and Permanent.

    `limits` returns the limits of a topic.
    """

    def __init__(
        self,
        config: ConnectionConfig,
        properties: Mapping[str, Any],
        limits: Callable[[str], TopicLimits],
        target: str,
    ) -> None:
        self.action, self._limits = f"write to {target}", limits
        self._error: Any = None
        self._partition_counts: dict[str, int] = {}
        callbacks = {"on_delivery": self._on_delivery, "delivery.report.only.error": True}
        self.producer, self.tracker = create_producer(config, {**properties, **callbacks})

    def _on_delivery(self, error: Any, message: Any) -> None:
        if error is not None and error.name() not in _PURGED and self._error is None:
            self._error = error

    def close(self) -> None:
        """Discards undelivered records and closes the producer."""
        self.producer.purge()
        del self.producer

    def send(self, values: Sequence[bytes | None], fields: RecordFields) -> list[Failure]:
        """Enqueues records. Returns the records that cannot be sent."""
        if fields.simple_topic is None:
            return self.check(values, fields, send=True)
        from confluent_kafka import KafkaException

        topic, produce = fields.simple_topic, self.producer.produce
        safe_size, failures = self._limits(topic).size // 2, []
        for index, (value, key) in enumerate(zip(values, fields.iter_keys(), strict=False)):
            try:
                if value is None or len(value) < safe_size:
                    produce(topic, value, key)
                    continue
            except (BufferError, KafkaException):
                pass
            failures += self._check_record(index, value, {"topic": topic, "key": key}, send=True)
        return failures

    def check(
        self, values: Sequence[bytes | None], fields: RecordFields, send: bool = False
    ) -> list[Failure]:
        """Returns the records that cannot be sent; enqueues the others with `send`."""
        failures = fields.check()
        rejected = {failure.index for failure in failures}
        for index, value in enumerate(values):
            if index not in rejected:
                failures += self._check_record(index, value, fields.arguments(index), send)
        return failures

    def _check_record(
        self, index: int, value: bytes | None, arguments: dict[str, Any], send: bool
    ) -> list[Failure]:
        topic = arguments["topic"]
        size, limits = _size(value, arguments), self._limits(topic)
        if size > limits.size:
            return [Failure(index, _too_large(size, limits.size))]
        if "timestamp" in arguments and not limits.accepts_timestamp(arguments["timestamp"]):
            return [Failure(index, _invalid_timestamp())]
        partition = arguments.get("partition", 0)
        if partition and partition >= self._partition_count(topic):
            message = f'topic "{topic}" has no partition {partition}'
            return [Failure(index, Rejected(message, code="invalid-partition"))]
        if send:
            self._produce(value, arguments)
        return []

    def _produce(self, value: bytes | None, arguments: dict[str, Any]) -> None:
        from confluent_kafka import KafkaException

        deadline = time.monotonic() + DELIVERY_TIMEOUT
        while True:
            try:
                self.producer.produce(value=value, **arguments)
                return
            except BufferError:
                self.producer.poll(_POLL_TIMEOUT)
                self._raise_error()
                if time.monotonic() > deadline:
                    raise unreachable(self.action, self.tracker) from None
                if self.tracker.disconnected:
                    report_retry(unreachable(self.action, self.tracker))
            except KafkaException as exception:
                error = exception.args[0]
                raise translate_error(error, self.action, self.tracker) from exception

    def _partition_count(self, topic: str) -> int:
        """Returns the number of partitions of a topic, cached until the next flush."""
        if topic not in self._partition_counts:
            with translate_errors(self.action, self.tracker):
                metadata = self.producer.list_topics(topic, DELIVERY_TIMEOUT)
            self._partition_counts[topic] = len(metadata.topics[topic].partitions)
        return self._partition_counts[topic]

    def flush(self) -> None:
        """Waits until all records are delivered. Raises Transient or Permanent otherwise."""
        self._partition_counts.clear()
        deadline = time.monotonic() + DELIVERY_TIMEOUT
        while self.producer.flush(_POLL_TIMEOUT):
            self._raise_error()
            if time.monotonic() > deadline:
                raise unreachable(self.action, self.tracker)
            if self.tracker.disconnected:
                report_retry(unreachable(self.action, self.tracker))
        self._raise_error()
        self.tracker.clear()

    def discard(self) -> None:
        """Discards undelivered records."""
        with translate_errors(self.action, self.tracker):
            self.producer.purge()
            self.producer.flush(_POLL_TIMEOUT)
        self._error = None

    def _raise_error(self) -> None:
        self.tracker.raise_permanent(self.action)
        if self._error is not None:
            error, self._error = self._error, None
            raise translate_error(error, self.action, self.tracker)


def _size(value: bytes | None, arguments: Mapping[str, Any]) -> int:
    """Returns an upper bound of the bytes of a record."""
    size = RECORD_OVERHEAD + len(value or b"") + len(arguments.get("key") or b"")
    headers = arguments.get("headers") or ()
    return size + sum(len(name) + len(text or b"") for name, text in headers)


def _too_large(size: int, limit: int) -> Rejected:
    return Rejected(
        f"expected a record of at most {limit:,} bytes, found {size:,}",
        code="too-large",
        hint="Increase max.message.bytes of the topic.",
    )


def _invalid_timestamp() -> Rejected:
    return Rejected(
        "the timestamp of the record is outside of the limits of the topic",
        code="invalid-timestamp",
        hint="Increase message.timestamp.before.max.ms or message.timestamp.after.max.ms of the "
        "topic.",
    )


class KafkaWriter(Writer):
    """Writes one partition of a batch at least once."""

    def __init__(self, producer: RecordProducer, mapping: RecordMapping) -> None:
        self._producer, self._mapping = producer, mapping

    def write(
        self,
        rows: pa.RecordBatch,
        payloads: pa.BinaryArray | None = None,
        operations: pa.StringArray | None = None,
    ) -> Sequence[Failure]:
        assert payloads is not None
        failures = self._producer.send(payloads.to_pylist(), self._mapping.fields(rows))
        self._producer.producer.poll(0)
        return failures

    def commit(self) -> Receipt:
        with translate_errors(self._producer.action, self._producer.tracker):
            self._producer.flush()
        return {}

    def abort(self) -> None:
        with suppress(PenstockError):
            self._producer.discard()
