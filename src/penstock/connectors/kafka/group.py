"""A consumer group that nobody consumes by: its offsets are written and read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from penstock.connectors.kafka.client import Admin, answered, consumer
from penstock.connectors.kafka.connection import ConnectionConfig
from penstock.connectors.kafka.faults import Notes
from penstock.connectors.kafka.position import Partition
from penstock.core.errors import Transient

if TYPE_CHECKING:
    from confluent_kafka import Consumer


class Group:
    """A group without members."""

    def __init__(self, config: ConnectionConfig, name: str) -> None:
        self._config, self._name = config, name

    def commit(self, offsets: Mapping[Partition, int]) -> None:
        """Writes offsets. Raises Transient or Permanent if that is not confirmed."""
        from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition

        at = [TopicPartition(*partition, offset) for partition, offset in offsets.items()]

        def call(timeout: float) -> None:
            asked = self._admin.client.alter_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(self._name, at)], request_timeout=timeout
            )
            for each in asked[self._name].result(timeout + 1).topic_partitions:
                if each.error is not None:
                    raise KafkaException(each.error)

        if at:
            self._admin.ask(f'commit the offsets of group "{self._name}"', call)

    def committed(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """The offsets of those partitions that have one, once no transaction changes them.

        Asked by a consumer: an admin client crashes where the group has no coordinator yet.
        """
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
    def _admin(self) -> Admin:
        return Admin(self._config)

    @cached_property
    def _consumer(self) -> tuple[Consumer, Notes]:
        own = {"group.id": self._name, "isolation.level": "read_committed"}
        return consumer(self._config, own)
