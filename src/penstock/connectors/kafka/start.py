"""Start offsets of a source without stored offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.connectors.kafka.config import KafkaSourceConfig, KafkaStartAt
from penstock.connectors.kafka.discovery import Topics
from penstock.connectors.kafka.group import ConsumerGroup
from penstock.connectors.kafka.offsets import Partition
from penstock.core.errors import Permanent


def start_offsets(
    config: KafkaSourceConfig,
    partitions: Sequence[Partition],
    topics: Topics,
    group: ConsumerGroup,
) -> dict[Partition, int]:
    """Returns the first offset to read of each partition. Raises Permanent if one is invalid."""
    start = config.start
    if start == "committed":
        default = topics.latest if config.reset == "latest" else topics.earliest
        return {**default(partitions), **group.committed(partitions)}
    if start == "latest":
        return topics.latest(partitions)
    if not isinstance(start, KafkaStartAt):
        return topics.earliest(partitions)
    if start.time is not None:
        return topics.since(partitions, start.time)
    offsets = _configured_offsets(start, topics.latest(partitions))
    return {**topics.earliest(partitions), **offsets}


def _configured_offsets(start: KafkaStartAt, ends: Mapping[Partition, int]) -> dict[Partition, int]:
    offsets = {
        Partition(topic, number): offset
        for topic, partitions in (start.offsets or {}).items()
        for number, offset in partitions.items()
    }
    for partition, offset in offsets.items():
        if partition not in ends:
            raise Permanent(
                f"cannot start at an offset of {partition}: the partition does not exist",
                code="unknown-partition",
                hint=f"Use one of {', '.join(map(str, ends))}." if ends else None,
            )
        if not 0 <= offset <= ends[partition]:
            raise Permanent(
                f"cannot start at offset {offset:,} of {partition}: the offset does not exist",
                code="unknown-offset",
                hint=f"Use an offset of at most {ends[partition]:,}, the offset of the next "
                "record.",
            )
    return offsets
