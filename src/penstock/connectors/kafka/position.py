"""Positions: how far each partition of each topic has been read."""

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


@dataclass(frozen=True)
class Position:
    """The next offset of each partition, and the id of each topic.

    The id tells a topic from another of the same name that was made after it was deleted.
    As JSON: `{"offsets": {"clicks": {"0": 17}}, "ids": {"clicks": "..."}}`.
    """

    offsets: Mapping[Partition, int]
    ids: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, offset: Offset) -> Position:
        """A position from its JSON."""
        offsets = {
            Partition(topic, int(number)): int(at)
            for topic, each in offset["offsets"].items()
            for number, at in each.items()
        }
        return cls(offsets, dict(offset.get("ids") or {}))

    def json(self) -> dict[str, Any]:
        """The position as JSON, always the same for the same position."""
        offsets: dict[str, dict[str, int]] = {}
        for partition in sorted(self.offsets):
            each = offsets.setdefault(partition.topic, {})
            each[str(partition.number)] = self.offsets[partition]
        return {"offsets": offsets, "ids": dict(sorted(self.ids.items()))}

    def renewed(self, end: Position) -> set[str]:
        """The topics that are others at `end` than here, under the same names."""
        return {
            topic for topic, id_ in self.ids.items() if topic in end.ids and end.ids[topic] != id_
        }

    def beyond(self, end: Position) -> bool:
        """Whether this has come further than `end` somewhere, in a topic that is the same."""
        renewed = self.renewed(end)
        return any(
            end.offsets.get(partition, -1) < at
            for partition, at in self.offsets.items()
            if partition.topic not in renewed
        )

    def until(self, end: Position) -> Iterator[tuple[Partition, int | None, int]]:
        """Each partition of `end` with its offset here, None if it is new, and its offset there."""
        renewed = self.renewed(end)
        for partition in sorted(end.offsets):
            start = None if partition.topic in renewed else self.offsets.get(partition)
            yield partition, start, end.offsets[partition]


def limited(start: Position, end: Position, most: int) -> Position:
    """A position between the two with at most `most` offsets to read: fair shares of each."""
    waiting = {p: (at or 0, to - (at or 0)) for p, at, to in start.until(end)}
    total = sum(length for _, length in waiting.values())
    if total <= most:
        return end
    shares = {p: length * most // total for p, (_, length) in waiting.items()}
    rest = most - sum(shares.values())
    for partition, (_, length) in waiting.items():
        if rest and shares[partition] < length:
            shares[partition] += 1
            rest -= 1
    taken = {p: at + shares[p] for p, (at, _) in waiting.items()}
    return Position(taken, end.ids)
