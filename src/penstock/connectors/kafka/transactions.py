"""Exactly-once writes: one transaction for each partition of a batch, with a batch marker.

The marker is a committed offset of a consumer group without members: the number of the next batch,
committed in the transaction of the batch's records. The metadata of the offset is the content of
the batch. A batch whose marker exists is skipped. A writer whose transactional ID was taken over by
another writer is fenced and cannot commit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.connectors.kafka.client import RESPONSE_TIMEOUT
from penstock.connectors.kafka.config import ConnectionConfig
from penstock.connectors.kafka.errors import translate_error, translate_errors, unreachable
from penstock.connectors.kafka.group import ConsumerGroup
from penstock.connectors.kafka.offsets import Partition
from penstock.connectors.kafka.records import RecordMapping
from penstock.connectors.kafka.writer import RecordProducer
from penstock.core.errors import PenstockError, Transient
from penstock.sdk import BatchId, Failure, Receipt, Writer

if TYPE_CHECKING:
    from confluent_kafka import Producer

INTERNAL_TOPIC = "__consumer_offsets"
"""The topic of markers of a sink whose topic depends on the row; it exists in every cluster."""
_TIMEOUT = 60.0
_FENCED_ERRORS = ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "_STATE")


@dataclass(frozen=True)
class TransactionalId:
    """The transactional ID of one partition of a sink, and the topic of its markers.

    Each query has its own markers, in the group `NAME.QUERY`, so that a replay does not skip
    batches of the pipeline.
    """

    name: str
    topic: str


class BatchMarker:
    """The last committed batch of a query and a transactional ID."""

    def __init__(self, id_: TransactionalId, query: str, config: ConnectionConfig) -> None:
        self.query = query
        self._partition = Partition(id_.topic, 0)
        self._group = ConsumerGroup(config, f"{id_.name}.{query}")
        committed = self._group.committed([self._partition])
        self.last_batch = committed.get(self._partition, 0) - 1

    def send(self, batch: BatchId, producer: Producer) -> None:
        """Adds the marker of a batch to the transaction of a producer.

        Raises TimeoutError if the coordinator of the group does not respond. The producer can then
        no longer be used: librdkafka ignores the timeout of the call (its issue 5456), which
        continues on a thread of its own.
        """
        from confluent_kafka import TopicPartition

        position = TopicPartition(*self._partition, batch.number + 1, batch.content)
        arguments = [position], self._group.metadata(), RESPONSE_TIMEOUT
        errors: list[Exception] = []

        def call() -> None:
            try:
                producer.send_offsets_to_transaction(*arguments)
            except Exception as error:
                errors.append(error)

        thread = threading.Thread(target=call, name="penstock-kafka-marker", daemon=True)
        thread.start()
        thread.join(RESPONSE_TIMEOUT)
        if thread.is_alive():
            raise TimeoutError
        for error in errors:
            raise error

    def close(self) -> None:
        """Closes the connection."""
        self._group.close()


def read_marker(id_: TransactionalId, query: str, config: ConnectionConfig) -> BatchId | None:
    """Returns the last committed batch of a query and a transactional ID.

    Ignores an open transaction, which the next producer of the transactional ID aborts.
    """
    group = ConsumerGroup(config, f"{id_.name}.{query}", stable=False)
    try:
        marker = group.committed_metadata(Partition(id_.topic, 0))
    finally:
        group.close()
    return None if marker is None else BatchId(query, marker[0] - 1, marker[1])


class FencedError(Transient):
    """The error of a producer whose transactional ID was taken over."""


class TransactionalProducer:
    """The producer of a transactional ID. It is replaced when it is no longer `usable`."""

    def __init__(
        self, id_: TransactionalId, config: ConnectionConfig, producer: RecordProducer
    ) -> None:
        self.producer, self._failed = producer, False
        self._id, self._config = id_, config
        self._marker: BatchMarker | None = None
        with translate_errors(producer.action, producer.tracker):
            producer.producer.init_transactions(_TIMEOUT)

    @property
    def usable(self) -> bool:
        """Whether the producer can begin another transaction.

        An aborted transaction has used sequence numbers, and the broker rejects the records that
        follow. After a lost connection librdkafka can wait forever for a coordinator that it has
        removed (its issue 5511).
        """
        self.producer.producer.poll(0)
        return not self._failed and not self.producer.tracker.disconnected

    def begin(self, batch: BatchId) -> bool:
        """Begins the transaction of a batch. Returns False if the batch was committed before.

        Raises FencedError if another writer has taken over the transactional ID.
        """
        marker = self._marker_of(batch.query)
        if batch.number <= marker.last_batch:
            return False
        with self._translate_errors():
            self.producer.producer.begin_transaction()
            try:
                marker.send(batch, self.producer.producer)
            except TimeoutError:
                self._failed = True
                raise unreachable(self.producer.action, self.producer.tracker) from None
        return True

    def commit(self, batch: BatchId) -> None:
        """Commits the transaction of a batch."""
        with self._translate_errors():
            self.producer.flush()
            self.producer.producer.commit_transaction(_TIMEOUT)
        self._marker_of(batch.query).last_batch = batch.number

    def abort(self) -> None:
        """Aborts the transaction."""
        self._failed = True
        self.producer.discard()
        with translate_errors(self.producer.action, self.producer.tracker):
            self.producer.producer.abort_transaction(_TIMEOUT)

    def close(self) -> None:
        """Discards undelivered records and closes the connections."""
        if self._marker is not None:
            self._marker.close()
        self.producer.close()

    def _marker_of(self, query: str) -> BatchMarker:
        if self._marker is None or self._marker.query != query:
            if self._marker is not None:
                self._marker.close()
            self._marker = BatchMarker(self._id, query, self._config)
        return self._marker

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Raises exceptions of the producer as FencedError, Transient or Permanent."""
        from confluent_kafka import KafkaException

        try:
            yield
        except KafkaException as exception:
            error, action = exception.args[0], self.producer.action
            if error.fatal() or error.name() in _FENCED_ERRORS:
                raise FencedError(
                    f"could not {action}: the transaction was fenced by another writer or timed "
                    "out",
                    code="fenced",
                    hint="Check that the pipeline runs only once, or increase transaction_timeout.",
                ) from exception
            raise translate_error(error, action, self.producer.tracker) from exception


class TransactionWriter(Writer):
    """Writes one partition of a batch exactly once.

    `open_producer(renew)` returns the producer of the transactional ID; with `renew` a new one.
    """

    def __init__(
        self,
        open_producer: Callable[[bool], TransactionalProducer],
        batch: BatchId,
        mapping: RecordMapping,
    ) -> None:
        self._batch, self._mapping = batch, mapping
        self._transaction = open_producer(False)
        try:
            self._begun = self._transaction.begin(batch)
        except FencedError:
            self._transaction = open_producer(True)
            self._begun = self._transaction.begin(batch)

    def write(
        self,
        rows: pa.RecordBatch,
        payloads: pa.BinaryArray | None = None,
        operations: pa.StringArray | None = None,
    ) -> Sequence[Failure]:
        assert payloads is not None
        fields = self._mapping.fields(rows)
        producer = self._transaction.producer
        if not self._begun:
            return producer.check(payloads.to_pylist(), fields)
        failures = producer.send(payloads.to_pylist(), fields)
        producer.producer.poll(0)
        return failures

    def commit(self) -> Receipt:
        if self._begun:
            self._transaction.commit(self._batch)
        return {}

    def abort(self) -> None:
        if self._begun:
            with suppress(PenstockError):
                self._transaction.abort()
