"""A consumer group without members, whose offsets are committed and read."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from penstock.connectors.kafka.client import create_consumer, request
from penstock.connectors.kafka.config import ConnectionConfig
from penstock.connectors.kafka.errors import ErrorTracker
from penstock.connectors.kafka.offsets import Partition
from penstock.core.errors import Transient

if TYPE_CHECKING:
    from confluent_kafka import Consumer, TopicPartition

_POLL_TIMEOUT = 0.05


class ConsumerGroup:
    """The offsets of a consumer group. Without `stable`, open transactions are ignored.

    A consumer accesses the offsets: an admin client aborts the process when the coordinator of the
    group stops (librdkafka pull request 5397).
    """

    def __init__(self, config: ConnectionConfig, name: str, stable: bool = True) -> None:
        self._config, self._name, self._stable = config, name, stable
        self._confirmed: dict[Partition, int] | None = None
        self._error: Any = None

    def commit(self, offsets: Mapping[Partition, int]) -> None:
        """Commits offsets. Raises Transient or Permanent if the commit is not confirmed."""
        from confluent_kafka import KafkaException, TopicPartition

        consumer, tracker = self._consumer
        positions = [TopicPartition(*partition, offset) for partition, offset in offsets.items()]

        def call(timeout: float) -> None:
            self._confirmed = self._error = None
            consumer.commit(offsets=positions, asynchronous=True)
            deadline = time.monotonic() + timeout
            while self._confirmed != offsets:
                if time.monotonic() > deadline:
                    raise TimeoutError
                consumer.poll(_POLL_TIMEOUT)
            if self._error is not None:
                raise KafkaException(self._error)

        if positions:
            request(f'commit the offsets of group "{self._name}"', call, tracker)

    def _on_commit(self, error: Any, positions: Sequence[Any]) -> None:
        self._confirmed = _offsets(positions)
        errors = (position.error for position in positions if position.error is not None)
        self._error = next(errors, error)

    def committed(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """Returns the committed offsets once no open transaction changes them."""
        return _offsets(self._committed(partitions))

    def committed_metadata(self, partition: Partition) -> tuple[int, str] | None:
        """Returns the committed offset of a partition and the metadata of the commit."""
        for position in self._committed([partition]):
            return position.offset, position.metadata or ""
        return None

    def _committed(self, partitions: Collection[Partition]) -> list[TopicPartition]:
        from confluent_kafka import KafkaException, TopicPartition

        consumer, tracker = self._consumer

        def call(timeout: float) -> list[TopicPartition]:
            requested = [TopicPartition(*partition) for partition in partitions]
            try:
                positions = consumer.committed(requested, timeout)
            finally:
                consumer.poll(0)  # reports lost connections to the tracker
            for position in positions:
                if position.error is not None:
                    raise KafkaException(position.error)
            return [position for position in positions if position.offset >= 0]

        action = f'read the offsets of group "{self._name}"'
        try:
            return request(action, call, tracker)
        except Transient as error:
            if tracker.disconnected or error.code != "unreachable":
                raise
            raise Transient(
                f"could not {action}: a transaction that changes the offsets does not end",
                code="unstable-offsets",
                hint="Abort the transaction if the brokers crashed: "
                "kafka-transactions.sh find-hanging.",
            ) from error

    def metadata(self) -> Any:
        """Returns the group metadata that a transactional producer requires to commit offsets."""
        return self._consumer[0].consumer_group_metadata()

    def close(self) -> None:
        """Closes the consumer and frees its threads. A later call creates another one."""
        if "_consumer" in self.__dict__:
            self._consumer[0].close()
            del self._consumer

    @cached_property
    def _consumer(self) -> tuple[Consumer, ErrorTracker]:
        properties = {
            "group.id": self._name,
            "isolation.level": "read_committed" if self._stable else "read_uncommitted",
            "on_commit": self._on_commit,
        }
        return create_consumer(self._config, properties)


def _offsets(positions: Iterable[Any]) -> dict[Partition, int]:
    return {
        Partition(position.topic, position.partition): position.offset for position in positions
    }
