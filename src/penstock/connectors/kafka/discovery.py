"""Discovery of topics, partitions and their offsets."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.connectors.kafka.client import RESPONSE_TIMEOUT, RETRY_INTERVAL, Admin
from penstock.connectors.kafka.config import KafkaSourceConfig
from penstock.connectors.kafka.errors import unknown_topic
from penstock.connectors.kafka.offsets import Partition
from penstock.core.errors import Permanent

if TYPE_CHECKING:
    from confluent_kafka.admin import TopicDescription

T = TypeVar("T")

PROPAGATION_TIMEOUT = 1.0
"""The longest time until all brokers have the metadata of a new topic, in seconds."""


class Topics:
    """The topics of a source: those of the option `topic`, and those that match `pattern`."""

    def __init__(self, config: KafkaSourceConfig) -> None:
        self._admin = Admin(config)
        self._names, self._pattern = config.topics, config.pattern
        self._isolation = config.isolation
        self._action = f"read {_quoted(self._names)}"
        if not self._names:
            self._action = f'read topics that match "{self._pattern}"'

    def partitions(self) -> tuple[list[Partition], dict[str, str]]:
        """Returns all existing partitions, and the IDs of their topics."""
        partitions, ids = [], {}
        for name, description in self._describe(self._list()).items():
            ids[name] = str(description.topic_id)
            partitions += [Partition(name, partition.id) for partition in description.partitions]
        return sorted(partitions), ids

    def check(self) -> None:
        """Raises Permanent if a topic does not exist, ConnectError without a response."""
        deadline = time.monotonic() + PROPAGATION_TIMEOUT
        while missing := set(self._names).difference(existing := self._existing()):
            if time.monotonic() > deadline:
                raise unknown_topic(min(missing), existing)
            time.sleep(RETRY_INTERVAL)

    def latest(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Returns the offset of the next record of each partition, subject to the isolation."""
        from confluent_kafka.admin import OffsetSpec

        return self._offsets(dict.fromkeys(partitions, OffsetSpec.latest()))

    def earliest(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Returns the offset of the oldest record of each partition."""
        from confluent_kafka.admin import OffsetSpec

        return self._offsets(dict.fromkeys(partitions, OffsetSpec.earliest()))

    def since(self, partitions: Collection[Partition], start: datetime) -> dict[Partition, int]:
        """Returns the offset of the first record at or after a time, or the latest offset."""
        from confluent_kafka.admin import OffsetSpec

        spec = OffsetSpec.for_timestamp(round(start.timestamp() * 1000))
        offsets = self._offsets(dict.fromkeys(partitions, spec))
        older = [partition for partition, offset in offsets.items() if offset < 0]
        return {**offsets, **self.latest(older)}

    def _list(self) -> list[str]:
        if self._pattern is None:
            return list(self._names)
        matches = re.compile(self._pattern).fullmatch
        names = [name for name in self._existing() if matches(name) and name not in self._names]
        return [*names, *self._names]

    def _existing(self) -> list[str]:
        return self._admin.topics(self._action)

    def _describe(self, names: Collection[str]) -> dict[str, TopicDescription]:
        from confluent_kafka import KafkaException, TopicCollection

        if not names:
            return {}

        def call(timeout: float) -> dict[str, TopicDescription]:
            futures = self._admin.client.describe_topics(
                TopicCollection(list(names)), request_timeout=timeout
            )
            descriptions = {}
            for name, future in futures.items():
                try:
                    descriptions[name] = future.result(timeout + 1)
                except KafkaException as error:
                    if error.args[0].name() != "UNKNOWN_TOPIC_OR_PART":
                        raise
            return descriptions

        return self._admin.request(self._action, call)

    def _offsets(self, specs: Mapping[Partition, Any]) -> dict[Partition, int]:
        from confluent_kafka import IsolationLevel, TopicPartition

        if not specs:
            return {}
        level = IsolationLevel.READ_UNCOMMITTED
        if self._isolation == "committed":
            level = IsolationLevel.READ_COMMITTED

        def call(timeout: float) -> dict[Partition, int]:
            futures = self._admin.client.list_offsets(
                {TopicPartition(*partition): spec for partition, spec in specs.items()},
                isolation_level=level, request_timeout=timeout,
            )  # fmt: skip
            return {
                Partition(partition.topic, partition.partition): future.result(timeout + 1).offset
                for partition, future in futures.items()
            }

        return self._admin.request(self._action, call)


class Discovery:
    """The existing partitions, refreshed every `interval` seconds."""

    def __init__(self, topics: Topics, interval: float) -> None:
        self._topics, self._interval = topics, interval
        self._expires = 0.0
        self._partitions: tuple[list[Partition], dict[str, str]] = ([], {})

    def partitions(self) -> tuple[list[Partition], dict[str, str]]:
        """Returns the partitions and the IDs of their topics."""
        if time.monotonic() >= self._expires:
            self._partitions = self._topics.partitions()
            self._expires = time.monotonic() + self._interval
        return self._partitions

    def query(self, call: Callable[[list[Partition], dict[str, str]], T]) -> T:
        """Returns `call(partitions, ids)`, retried if a topic was deleted meanwhile."""
        deadline = time.monotonic() + RESPONSE_TIMEOUT
        while True:
            try:
                return call(*self.partitions())
            except Permanent as error:
                if error.code != "unknown-topic" or time.monotonic() > deadline:
                    raise
            self.expire()
            time.sleep(RETRY_INTERVAL)

    def expire(self) -> None:
        """Refreshes the partitions at the next use."""
        self._expires = 0.0


def _quoted(names: Collection[str]) -> str:
    quoted = ", ".join(f'"{name}"' for name in names)
    return f"topic {quoted}" if len(names) == 1 else f"topics {quoted}"
