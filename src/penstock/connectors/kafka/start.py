"""Where a source begins that has no position yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal

from pydantic import field_validator, model_validator

from penstock.connectors.kafka.group import Group
from penstock.connectors.kafka.position import Partition
from penstock.connectors.kafka.topics import Topics
from penstock.core.errors import Permanent
from penstock.sdk import Config


class StartAt(Config):
    """A place to start from: a time, or offsets."""

    timestamp: datetime | None = None
    """At the first record that is not older. Without a zone it is UTC."""
    offsets: dict[str, dict[int, int]] | None = None
    """By topic and partition, `{clicks: {0: 17}}`; partitions left out start from earliest."""

    @field_validator("offsets", mode="before")
    @classmethod
    def _by_topic(cls, offsets: object) -> object:
        if isinstance(offsets, dict) and not all(isinstance(o, dict) for o in offsets.values()):
            raise ValueError("give offsets by topic and partition, as in {clicks: {0: 17}}")
        return offsets

    @model_validator(mode="after")
    def _one_of(self) -> StartAt:
        if (self.timestamp is None) == (self.offsets is None):
            raise ValueError("give either timestamp or offsets")
        return self


Start = Literal["earliest", "latest", "committed"] | StartAt
Reset = Literal["earliest", "latest"]


def beginning(
    start: Start, reset: Reset, partitions: Sequence[Partition], topics: Topics, group: Group
) -> dict[Partition, int]:
    """The first offset to read of each partition; `reset` where the group has committed none.

    Raises Permanent if there is none such.
    """
    if start == "committed":
        edges = topics.latest if reset == "latest" else topics.earliest
        return {**edges(partitions), **group.committed(partitions)}
    if start == "latest":
        return topics.latest(partitions)
    if isinstance(start, StartAt) and start.timestamp is not None:
        at = start.timestamp
        return topics.since(partitions, at if at.tzinfo else at.replace(tzinfo=UTC))
    given = _given(start, topics.latest(partitions)) if isinstance(start, StartAt) else {}
    return {**topics.earliest(partitions), **given}


def _given(start: StartAt, ends: Mapping[Partition, int]) -> dict[Partition, int]:
    given = {
        Partition(topic, number): at
        for topic, each in (start.offsets or {}).items()
        for number, at in each.items()
    }
    for partition, at in given.items():
        if partition not in ends:
            raise Permanent(
                f"cannot start at an offset of {partition}: there is no such partition",
                code="unknown-partition",
                hint=f"there are {', '.join(map(str, ends))}" if ends else None,
            )
        if not 0 <= at <= ends[partition]:
            raise Permanent(
                f"cannot start at offset {at:,} of {partition}: there is no such offset",
                code="unknown-offset",
                hint=f"its next record will have offset {ends[partition]:,}",
            )
    return given
