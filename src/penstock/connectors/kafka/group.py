"""The consumer group that shows how far a source has come."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from penstock.connectors.kafka.client import Admin
from penstock.connectors.kafka.connection import ConnectionConfig
from penstock.connectors.kafka.position import Partition


class Group:
    """A group without members: its offsets are written and read, nobody consumes by it."""

    def __init__(self, config: ConnectionConfig, name: str) -> None:
        self._admin = Admin(config)
        self._name = name

    def commit(self, offsets: Mapping[Partition, int]) -> None:
        """Writes offsets. Raises Transient or Permanent if that is not confirmed."""
        from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

        at = [TopicPartition(*partition, offset) for partition, offset in offsets.items()]

        def call(timeout: float) -> None:
            asked = self._admin.client.alter_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(self._name, at)], request_timeout=timeout
            )
            asked[self._name].result(timeout + 1)

        if at:
            self._admin.ask(f'commit the offsets of group "{self._name}"', call)

    def committed(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """The offsets of those partitions that have one."""
        from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

        wanted = [TopicPartition(*each) for each in partitions]

        def call(timeout: float) -> dict[Partition, int]:
            asked = self._admin.client.list_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(self._name, wanted)], request_timeout=timeout
            )
            found = asked[self._name].result(timeout + 1).topic_partitions
            return {Partition(at.topic, at.partition): at.offset for at in found if at.offset >= 0}

        return self._admin.ask(f'read the offsets of group "{self._name}"', call)
