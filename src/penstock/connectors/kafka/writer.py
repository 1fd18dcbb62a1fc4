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
_BATCH_SIZE = 1_000_000
"""The default of `batch.size` in librdkafka."""
_TOPIC_ERRORS = {
    "UNKNOWN_TOPIC_OR_PART": "unknown-topic", "TOPIC_AUTHORIZATION_FAILED": "authorization",
    "TOPIC_EXCEPTION": "invalid-topic",
}  # fmt: skip
"""Codes of the errors that concern the topic of one row."""
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
        self._topic_errors: dict[str, Rejected | None] = {}
        self._pending: dict[str, int] = {}
        given = {"batch.size": _BATCH_SIZE, **properties, **config.user_properties()}
        self._batch_size = min(int(given["batch.size"]), int(given["message.max.bytes"]))
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
        topic = fields.simple_topic
        if topic is None or (max_size := self._limits(topic).size) < self._batch_size:
            return self.check(values, fields, send=True)
        from confluent_kafka import KafkaException

        produce = self.producer.produce
        safe_size, failures = max_size // 2, []
        has_keys = fields.keys is not None
        for index, (value, key) in enumerate(zip(values, fields.iter_keys(), strict=False)):
            try:
                if (value is None or len(value) < safe_size) and (key is not None or not has_keys):
                    produce(topic, value, key)
                    continue
            except (BufferError, KafkaException):
                pass
            arguments = {"topic": topic, "key": key} if has_keys else {"topic": topic}
            failures += self._check_record(
                index, value, arguments, send=True, keyed=fields.keyed, is_given=True
            )
        return failures

    def check(
        self, values: Sequence[bytes | None], fields: RecordFields, send: bool = False
    ) -> list[Failure]:
        """Returns the records that cannot be sent; enqueues the others with `send`."""
        failures = fields.check()
        rejected = {failure.index for failure in failures}
        for index, value in enumerate(values):
            if index not in rejected:
                failures += self._check_record(
                    index, value, fields.arguments(index), send, keyed=fields.keyed,
                    is_given=isinstance(fields.topic, str),
                )  # fmt: skip
        return failures

    def _check_record(
        self,
        index: int,
        value: bytes | None,
        arguments: dict[str, Any],
        send: bool,
        *,
        keyed: bool,
        is_given: bool,
    ) -> list[Failure]:
        """Returns the failure of a record; enqueues it otherwise with `send`.

        With `keyed` it needs a key. An unknown topic is a failure of the record unless the topic
        `is_given` for all records.
        """
        topic = arguments["topic"]
        if not is_given and (error := self._topic_error(topic)) is not None:
            return [Failure(index, error)]
        size, limits = _size(value, arguments), self._limits(topic)
        if "key" in arguments and arguments["key"] is None and (keyed or limits.keyed):
            return [Failure(index, _null_key(topic))]
        if size > limits.size:
            return [Failure(index, _too_large(size, limits.size))]
        if "timestamp" in arguments and not limits.accepts_timestamp(arguments["timestamp"]):
            return [Failure(index, _invalid_timestamp())]
        partition = arguments.get("partition", 0)
        if partition and partition >= self._partition_count(topic):
            message = f'topic "{topic}" has no partition {partition}'
            return [Failure(index, Rejected(message, code="invalid-partition"))]
        if send:
            if limits.size < self._batch_size:
                self._limit_batch(topic, size, limits.size)
            self._produce(value, arguments)
        return []

    def _limit_batch(self, topic: str, size: int, limit: int) -> None:
        """Delivers the records of a topic if the next one exceeds the limit with them.

        Brokers limit the batches of each topic, and a producer limits those of all its topics.
        """
        pending = self._pending.get(topic, 0) + size
        if pending > limit:
            self.flush()
            pending = size
        self._pending[topic] = pending

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

    def _topic_error(self, topic: str) -> Rejected | None:
        """Returns the error of the topic of a row, cached until the next flush."""
        if topic not in self._topic_errors:
            name = None if self._limits(topic).known else self._metadata_error(topic)
            code = _TOPIC_ERRORS.get(name or "")
            message = f'the topic "{topic}" does not exist, or cannot be written: {name}'
            self._topic_errors[topic] = Rejected(message, code=code) if code else None
        return self._topic_errors[topic]

    def _metadata_error(self, topic: str) -> str | None:
        """Returns the name of the error that a broker reports for a topic, or None."""
        with translate_errors(self.action, self.tracker):
            metadata = self.producer.list_topics(topic, DELIVERY_TIMEOUT)
        error = metadata.topics[topic].error
        return None if error is None else str(error.name())

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
        self._topic_errors.clear()
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
    size = RECORD_OVERHEAD + len(value or b"") + _bytes(arguments.get("key") or b"")
    headers = arguments.get("headers") or ()
    return size + sum(_bytes(name) + len(text or b"") for name, text in headers)


def _bytes(text: bytes | str) -> int:
    return len(text.encode() if isinstance(text, str) else text)


def _null_key(topic: str) -> Rejected:
    return Rejected(
        f'the key is null, and the topic "{topic}" has the last record of each key',
        code="null-key",
        hint="Filter rows without a key, or replace the null in a transform.",
    )


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
