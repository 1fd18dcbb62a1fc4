"""What a cluster says of its topics: which there are, and how far they reach."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from penstock.connectors.kafka.client import ANSWER_SECONDS, PAUSE, Admin
from penstock.connectors.kafka.connection import ConnectionConfig
from penstock.connectors.kafka.position import Partition
from penstock.core.errors import Permanent
from penstock.core.text import did_you_mean, nearest

if TYPE_CHECKING:
    from confluent_kafka.admin import ClusterMetadata, TopicDescription

T = TypeVar("T")

DOUBT_SECONDS = 1.0
"""A broker hears of a topic a moment after it was made: it is looked for so long."""
_EVER = 2**63

Isolation = Literal["committed", "uncommitted"]


class Limits(NamedTuple):
    """What a topic takes: a record's bytes, and how far its time may be off, in milliseconds."""

    size: int = 1_048_588
    before: int = _EVER
    after: int = _EVER

    def take(self, at: int) -> bool:
        """Whether the topic now takes a record of that time."""
        ahead = at - time.time() * 1000
        return -self.before <= ahead <= self.after


class Topics:
    """The topics of a cluster that are named, or whose names match a pattern."""

    def __init__(
        self,
        config: ConnectionConfig,
        named: Collection[str],
        pattern: str | None,
        isolation: Isolation,
    ) -> None:
        self._admin = Admin(config)
        self._named, self._pattern, self._isolation = named, pattern, isolation
        self._doing = f"read {_listed(named)}" if named else f'read topics like "{pattern}"'

    def found(self) -> tuple[list[Partition], dict[str, str]]:
        """All partitions there are, and the topics' ids. Named topics that are missing are not."""
        names = self._names()
        partitions, ids = [], {}
        for name, described in self._described(names).items():
            ids[name] = str(described.topic_id)
            partitions += [Partition(name, each.id) for each in described.partitions]
        return sorted(partitions), ids

    def check(self) -> None:
        """Raises Permanent if a named topic is missing, ConnectError if nothing answers."""
        until = time.monotonic() + DOUBT_SECONDS
        while lacking := set(self._named).difference(existing := self._existing()):
            if time.monotonic() > until:
                raise missing(min(lacking), existing)
            time.sleep(PAUSE)

    def latest(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The offset that the next record of each will have; of committed ones, if asked so."""
        from confluent_kafka.admin import OffsetSpec

        return self._offsets(dict.fromkeys(partitions, OffsetSpec.latest()))

    def earliest(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The offset of the oldest record of each that is still there."""
        from confluent_kafka.admin import OffsetSpec

        return self._offsets(dict.fromkeys(partitions, OffsetSpec.earliest()))

    def since(self, partitions: Collection[Partition], at: datetime) -> dict[Partition, int]:
        """The offset of the first record of each that is not older than `at`, or the latest."""
        from confluent_kafka.admin import OffsetSpec

        spec = OffsetSpec.for_timestamp(round(at.timestamp() * 1000))
        found = self._offsets(dict.fromkeys(partitions, spec))
        late = [partition for partition, offset in found.items() if offset < 0]
        return {**found, **self.latest(late)}

    def _names(self) -> list[str]:
        if self._pattern is None:
            return list(self._named)
        matches = re.compile(self._pattern).fullmatch
        return [name for name in self._existing() if matches(name) and name not in self._named] + [
            *self._named
        ]

    def _existing(self) -> list[str]:
        metadata = self._admin.ask(
            self._doing, lambda timeout: self._admin.client.list_topics(timeout=timeout)
        )
        return _existing(metadata)

    def _described(self, names: Collection[str]) -> dict[str, TopicDescription]:
        from confluent_kafka import KafkaException, TopicCollection

        if not names:
            return {}

        def call(timeout: float) -> dict[str, TopicDescription]:
            asked = self._admin.client.describe_topics(
                TopicCollection(list(names)), request_timeout=timeout
            )
            answers = {}
            for name, future in asked.items():
                try:
                    answers[name] = future.result(timeout + 1)
                except KafkaException as error:
                    if error.args[0].name() != "UNKNOWN_TOPIC_OR_PART":
                        raise
            return answers

        return self._admin.ask(self._doing, call)

    def _offsets(self, wanted: Mapping[Partition, Any]) -> dict[Partition, int]:
        from confluent_kafka import IsolationLevel, TopicPartition

        if not wanted:
            return {}
        level = IsolationLevel.READ_UNCOMMITTED
        if self._isolation == "committed":
            level = IsolationLevel.READ_COMMITTED

        def call(timeout: float) -> dict[Partition, int]:
            asked = self._admin.client.list_offsets(
                {TopicPartition(*partition): spec for partition, spec in wanted.items()},
                isolation_level=level, request_timeout=timeout,
            )  # fmt: skip
            return {
                Partition(at.topic, at.partition): future.result(timeout + 1).offset
                for at, future in asked.items()
            }

        return self._admin.ask(self._doing, call)


class Discovery:
    """The partitions there are, looked up again when `interval` seconds have passed."""

    def __init__(self, topics: Topics, interval: float) -> None:
        self._topics, self._interval = topics, interval
        self._due = 0.0
        self._found: tuple[list[Partition], dict[str, str]] = ([], {})

    def __call__(self) -> tuple[list[Partition], dict[str, str]]:
        if time.monotonic() >= self._due:
            self._found = self._topics.found()
            self._due = time.monotonic() + self._interval
        return self._found

    def ask(self, question: Callable[[list[Partition], dict[str, str]], T]) -> T:
        """`question(partitions, ids)`, once more if one of the topics is gone meanwhile."""
        until = time.monotonic() + ANSWER_SECONDS
        while True:
            try:
                return question(*self())
            except Permanent as error:
                if error.code != "unknown-topic" or time.monotonic() > until:
                    raise
            self.expire()
            time.sleep(PAUSE)

    def expire(self) -> None:
        """What is known is out of date."""
        self._due = 0.0


class Administration:
    """What a sink asks of a cluster."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def topics(self, doing: str) -> list[str]:
        """The names of all topics."""
        metadata = self._admin.ask(
            doing, lambda timeout: self._admin.client.list_topics(timeout=timeout)
        )
        return _existing(metadata)

    def create(
        self, name: str, partitions: int, replication: int | None, config: Mapping[str, str]
    ) -> None:
        """Creates a topic that is not there."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import NewTopic

        def call(timeout: float) -> None:
            asked = self._admin.client.create_topics(
                [NewTopic(name, partitions, replication or -1, config=dict(config))],
                operation_timeout=timeout, request_timeout=timeout,
            )  # fmt: skip
            try:
                asked[name].result(timeout + 1)
            except KafkaException as error:
                if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
                    raise

        self._admin.ask(f'create topic "{name}"', call)

    def limits(self, topic: str) -> Limits:
        """What a topic takes, as far as we may know it."""
        from confluent_kafka.admin import ConfigResource, ResourceType

        def call(timeout: float) -> Limits:
            asked = ConfigResource(ResourceType.TOPIC, topic)
            futures = self._admin.client.describe_configs([asked], request_timeout=timeout)
            found = {k: each.value for k, each in futures[asked].result(timeout + 1).items()}
            size = int(found["max.message.bytes"])
            if found.get("message.timestamp.type") == "LogAppendTime":
                return Limits(size)
            before, after = (
                int(found.get(f"message.timestamp.{side}.max.ms", _EVER))
                for side in ("before", "after")
            )
            return Limits(size, before, after)

        try:
            return self._admin.ask(f'write to topic "{topic}"', call)
        except Permanent as error:
            if error.code not in ("authorization", "unknown-topic"):
                raise
            return Limits()


def _existing(metadata: ClusterMetadata) -> list[str]:
    """Those without a leader for the moment are there, too."""
    gone = "UNKNOWN_TOPIC_OR_PART"
    return [n for n, t in metadata.topics.items() if not (t.error and t.error.name() == gone)]


def missing(name: str, existing: Collection[str], advice: str | None = None) -> Permanent:
    """The error of a topic that is not there."""
    known = [each for each in existing if not each.startswith("__")]
    close = did_you_mean(name, known) if advice is None or nearest(name, known) else None
    hint = " ".join(filter(None, [close, advice])) or "there are no topics yet: create it first"
    return Permanent(f'cannot find topic "{name}"', code="unknown-topic", hint=hint)


def _listed(names: Collection[str]) -> str:
    quoted = ", ".join(f'"{name}"' for name in names)
    return f"topic {quoted}" if len(names) == 1 else f"topics {quoted}"
