"""Offsets of topics: the next offset to read of each partition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from penstock.sdk import Offset


class Partition(NamedTuple):
    """A partition of a topic."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic} [{self.number}]"

    @property
    def origin(self) -> str:
        """The name of the partition as the origin of its records."""
        return f"{self.topic}:{self.number}"


@dataclass(frozen=True)
class TopicOffsets:
    """The next offset of each partition, and the ID of each topic.

    The ID distinguishes a topic from a recreated topic of the same name.
    As JSON: `{"offsets": {"clicks": {"0": 17}}, "ids": {"clicks": "..."}}`.
    """

    offsets: Mapping[Partition, int]
    ids: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, offset: Offset) -> TopicOffsets:
        """Returns the offsets of a source's offset."""
        offsets = {
            Partition(topic, int(number)): int(next_offset)
            for topic, partitions in offset["offsets"].items()
            for number, next_offset in partitions.items()
        }
        return cls(offsets, dict(offset.get("ids") or {}))

    def to_json(self) -> dict[str, Any]:
        """Returns the offsets as JSON, equal for equal offsets."""
        offsets: dict[str, dict[str, int]] = {}
        for partition in sorted(self.offsets):
            topic = offsets.setdefault(partition.topic, {})
            topic[str(partition.number)] = self.offsets[partition]
        return {"offsets": offsets, "ids": dict(sorted(self.ids.items()))}

    def recreated_topics(self, end: TopicOffsets) -> set[str]:
        """Returns the topics that were deleted and created again before `end`."""
        return {
            topic for topic, id_ in self.ids.items() if topic in end.ids and end.ids[topic] != id_
        }

    def exceeds(self, end: TopicOffsets) -> bool:
        """Returns whether an offset is greater than that of `end`, in a topic not recreated."""
        recreated = self.recreated_topics(end)
        return any(
            end.offsets.get(partition, -1) < offset
            for partition, offset in self.offsets.items()
            if partition.topic not in recreated
        )

    def ranges(self, end: TopicOffsets) -> Iterator[tuple[Partition, int | None, int]]:
        """Yields each partition of `end` with its start offset, None if it is new, and its end."""
        recreated = self.recreated_topics(end)
        for partition in sorted(end.offsets):
            start = None if partition.topic in recreated else self.offsets.get(partition)
            yield partition, start, end.offsets[partition]


def limit_offsets(start: TopicOffsets, end: TopicOffsets, max_records: int) -> TopicOffsets:
    """Returns offsets at most `max_records` after `start`, in proportion to the lag.

    The records left over by rounding down are those of the partitions with the largest lag.
    """
    unread = {
        partition: (first or 0, last - (first or 0)) for partition, first, last in start.ranges(end)
    }
    total = sum(length for _, length in unread.values())
    if total <= max_records:
        return end
    shares = {partition: length * max_records // total for partition, (_, length) in unread.items()}
    remainder = max_records - sum(shares.values())
    for partition, (_, length) in sorted(unread.items(), key=lambda item: -item[1][1]):
        if remainder and shares[partition] < length:
            shares[partition] += 1
            remainder -= 1
    offsets = {partition: first + shares[partition] for partition, (first, _) in unread.items()}
    return TopicOffsets(offsets, end.ids)
