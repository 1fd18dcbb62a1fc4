"""A consumer group that nobody consumes by: its offsets are written and read."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from penstock.connectors.kafka.client import answered, consumer
from penstock.connectors.kafka.connection import ConnectionConfig
from penstock.connectors.kafka.faults import Notes
from penstock.connectors.kafka.position import Partition
from penstock.core.errors import Transient

if TYPE_CHECKING:
    from confluent_kafka import Consumer

_WAIT = 0.05


class Group:
    """A group without members.

    Its offsets are written and read by a consumer: an admin client brings the process down when
    the group's coordinator goes away (librdkafka, pull request 5397).
    """

    def __init__(self, config: ConnectionConfig, name: str) -> None:
        self._config, self._name = config, name
        self._confirmed: dict[Partition, int] | None = None
        self._error: Any = None

    def commit(self, offsets: Mapping[Partition, int]) -> None:
        """Writes offsets. Raises Transient or Permanent if that is not confirmed."""
        from confluent_kafka import KafkaException, TopicPartition

        asked, notes = self._consumer
        at = [TopicPartition(*partition, offset) for partition, offset in offsets.items()]

        def call(timeout: float) -> None:
            self._confirmed = self._error = None
            asked.commit(offsets=at, asynchronous=True)
            until = time.monotonic() + timeout
            while self._confirmed != offsets:
                if time.monotonic() > until:
                    raise TimeoutError
                asked.poll(_WAIT)
            if self._error is not None:
                raise KafkaException(self._error)

        if at:
            answered(f'commit the offsets of group "{self._name}"', call, notes)

    def _heard(self, error: Any, offsets: Sequence[Any]) -> None:
        self._confirmed = {Partition(at.topic, at.partition): at.offset for at in offsets}
        self._error = next((at.error for at in offsets if at.error is not None), error)

    def committed(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """The offsets of those partitions that have one, once no transaction changes them."""
        from confluent_kafka import KafkaException, TopicPartition

        asked, notes = self._consumer

        def call(timeout: float) -> dict[Partition, int]:
            found = asked.committed([TopicPartition(*each) for each in partitions], timeout)
            for at in found:
                if at.error is not None:
                    raise KafkaException(at.error)
            return {Partition(at.topic, at.partition): at.offset for at in found if at.offset >= 0}

        doing = f'read the offsets of group "{self._name}"'
        try:
            return answered(doing, call, notes)
        except Transient as error:
            if notes.down or error.code != "unreachable":
                raise
            raise Transient(
                f"could not {doing}: a transaction that changes them does not end",
                code="unstable-offsets",
                hint="after a crash of the brokers it may have to be ended by hand: "
                "kafka-transactions.sh find-hanging",
            ) from error

    def metadata(self) -> Any:
        """What a producer that commits offsets of the group in a transaction is told."""
        return self._consumer[0].consumer_group_metadata()

    def close(self) -> None:
        """Lets go of the connections."""
        if "_consumer" in self.__dict__:
            self._consumer[0].close()

    @cached_property
    def _consumer(self) -> tuple[Consumer, Notes]:
        own = {
            "group.id": self._name,
            "isolation.level": "read_committed",
            "on_commit": self._heard,
        }
        return consumer(self._config, own)
