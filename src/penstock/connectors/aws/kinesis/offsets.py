"""Offsets of a Kinesis stream: one position for each shard.

A position is a text: the sequence number of the last record read, `START`, `SINCE` and a time,
`AT` and a sequence number (inclusive), or `END` for a closed shard that was read to its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

START, SINCE, AT, END = "start", "@", "=", "end"

Positions = Mapping[str, str]


class Shard(NamedTuple):
    """A shard, its parents that still exist, and whether it is closed."""

    id: str
    parents: frozenset[str]
    closed: bool


def min_position(left: str, right: str) -> str:
    """Returns the earlier of two positions in a shard."""
    return min(left, right, key=_rank)


def add_children(positions: Positions, shards: Iterable[Shard], start: str) -> dict[str, str]:
    """Returns the positions with the children of shards that were read to their end.

    Children begin at `start`. Ended shards that no longer exist are removed.
    """
    shards = list(shards)
    existing = {shard.id for shard in shards}
    extended = {
        id_: position for id_, position in positions.items() if position != END or id_ in existing
    }
    for shard in shards:
        ended = [positions.get(parent) == END for parent in shard.parents]
        if shard.id not in extended and ended and all(ended):
            extended[shard.id] = start
    return extended


def iterator_parameters(position: str) -> dict[str, object]:
    """Returns the parameters of GetShardIterator for the first record after a position."""
    if position == START:
        return {"ShardIteratorType": "TRIM_HORIZON"}
    if position.startswith(SINCE):
        time = float(position.removeprefix(SINCE))
        return {"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": time}
    if position.startswith(AT):
        number = position.removeprefix(AT)
        return {"ShardIteratorType": "AT_SEQUENCE_NUMBER", "StartingSequenceNumber": number}
    return {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "StartingSequenceNumber": position}


def _rank(position: str) -> tuple[int, float | int]:
    if position == END:
        return (2, 0)
    if position.isdecimal():
        return (1, int(position))
    return (0, 0)
