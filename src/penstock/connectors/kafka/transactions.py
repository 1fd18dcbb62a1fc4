"""Exactly once: one transaction for each partition of a batch, with a marker in it.

The marker is the offset of a consumer group that nobody reads by: the number of the next batch,
committed in the same transaction as the batch's records. A batch that is written again finds the
marker and is passed over. A writer that was thought dead and is not has lost its right to commit,
since its transactional id has been taken over by the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.connectors.kafka.addressing import Addressing
from penstock.connectors.kafka.connection import ConnectionConfig
from penstock.connectors.kafka.faults import fault, told
from penstock.connectors.kafka.group import Group
from penstock.connectors.kafka.position import Partition
from penstock.connectors.kafka.writing import Outbox
from penstock.core.errors import PenstockError, Transient
from penstock.sdk import BatchId, Failure, Receipt, Writer

if TYPE_CHECKING:
    from confluent_kafka import Producer

INTERNAL = "__consumer_offsets"
"""A topic that every cluster has: markers of a sink without a topic of its own stand there."""
_TIMEOUT = 60.0


@dataclass(frozen=True)
class Line:
    """The batches of one partition of a sink; `name` is its transactional id.

    Each query has markers of its own, in the group `NAME.QUERY`, so that what is replayed by hand
    does not hide what the pipeline has written.
    """

    name: str
    topic: str


class Marker:
    """How far a query has come on a line."""

    def __init__(self, line: Line, query: str, config: ConnectionConfig) -> None:
        self.query = query
        self._place = Partition(line.topic, 0)
        self._group = Group(config, f"{line.name}.{query}")
        self.done = self._group.committed([self._place]).get(self._place, 0) - 1

    def send(self, number: int, producer: Producer) -> None:
        """Makes the marker of a batch part of the producer's transaction."""
        from confluent_kafka import TopicPartition

        at = TopicPartition(*self._place, number + 1)
        producer.send_offsets_to_transaction([at], self._group.metadata(), _TIMEOUT)

    def close(self) -> None:
        """Lets go of the connection."""
        self._group.close()


class Transactor:
    """The producer of a line's transactions, and what it knows of its marker.

    It is `spent` once a transaction was aborted: records that were discarded on their way have
    taken sequence numbers, and the broker refuses those that follow.
    """

    def __init__(self, line: Line, config: ConnectionConfig, outbox: Outbox) -> None:
        self.outbox, self.spent = outbox, False
        self._line, self._config = line, config
        self._marker: Marker | None = None
        with told(outbox.doing, outbox.notes):
            outbox.producer.init_transactions(_TIMEOUT)

    def begin(self, batch: BatchId) -> bool:
        """Begins the transaction of a batch; False if the batch is there already.

        Raises _Fenced if another writer has taken over.
        """
        marker = self._marker_of(batch.query)
        if batch.number <= marker.done:
            return False
        with _fencing(self.outbox):
            self.outbox.producer.begin_transaction()
            marker.send(batch.number, self.outbox.producer)
        return True

    def commit(self, batch: BatchId) -> None:
        """Makes the batch visible."""
        with _fencing(self.outbox):
            self.outbox.flush()
            self.outbox.producer.commit_transaction(_TIMEOUT)
        self._marker_of(batch.query).done = batch.number

    def abort(self) -> None:
        """Nothing of the transaction becomes visible."""
        self.spent = True
        self.outbox.discard()
        with told(self.outbox.doing, self.outbox.notes):
            self.outbox.producer.abort_transaction(_TIMEOUT)

    def close(self) -> None:
        """Lets go of the connections; what has not been sent yet is dropped."""
        self._let_go_of_marker()
        self.outbox.close()

    def _let_go_of_marker(self) -> None:
        if self._marker is not None:
            self._marker.close()

    def _marker_of(self, query: str) -> Marker:
        if self._marker is None or self._marker.query != query:
            self._let_go_of_marker()
            self._marker = Marker(self._line, query, self._config)
        return self._marker


class _Fenced(Transient):
    """Another writer has taken over the line."""


class _fencing:
    """Turns what a transactional producer raises into ours."""

    def __init__(self, outbox: Outbox) -> None:
        self.outbox = outbox

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, raised: BaseException | None, trace: Any) -> None:
        from confluent_kafka import KafkaException

        if not isinstance(raised, KafkaException):
            return
        error = raised.args[0]
        if error.fatal() or error.name() in _FENCING:
            raise _Fenced(
                f"could not {self.outbox.doing}: another writer has taken over, or the transaction "
                "lasted too long",
                code="fenced",
                hint="does the pipeline run twice? is transaction_timeout too short for a batch?",
            ) from raised
        raise fault(error, self.outbox.doing, self.outbox.notes) from raised


_FENCING = ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "_STATE")


class TransactionWriter(Writer):
    """Writes one partition of a batch, exactly once.

    `transactor(renew)` gives the line's transactor; a new one with `renew`.
    """

    def __init__(
        self,
        transactor: Callable[[bool], Transactor],
        batch: BatchId,
        addressing: Addressing,
    ) -> None:
        self._batch, self._addressing = batch, addressing
        self._transactor = transactor(False)
        try:
            self._begun = self._transactor.begin(batch)
        except _Fenced:
            self._transactor = transactor(True)
            self._begun = self._transactor.begin(batch)

    def write(
        self, rows: pa.RecordBatch, payloads: pa.BinaryArray | None = None
    ) -> Sequence[Failure]:
        assert payloads is not None
        to = self._addressing.of(rows)
        outbox = self._transactor.outbox
        if not self._begun:
            return outbox.judge(payloads.to_pylist(), to)
        failures = outbox.send(payloads.to_pylist(), to)
        outbox.producer.poll(0)
        return failures

    def commit(self) -> Receipt:
        if self._begun:
            self._transactor.commit(self._batch)
        return {}

    def abort(self) -> None:
        if self._begun:
            with suppress(PenstockError):
                self._transactor.abort()
