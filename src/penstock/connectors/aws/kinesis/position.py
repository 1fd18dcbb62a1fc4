"""Places in shards: what has been read of each.

A place is a text: the sequence number of the last record, `START`, `@` and a time (from then on),
or `END` of a shard that was closed and read to its end. Where no record was read yet, a place is
that from which the source was started, in all shards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.connectors.aws.kinesis.stream import Shard

START, SINCE, END = "start", "@", "end"

Places = Mapping[str, str]


def earlier(one: str, other: str) -> str:
    """The place in a shard that comes first."""
    return min(one, other, key=_rank)


def grown(places: Places, shards: Iterable[Shard], first: str) -> dict[str, str]:
    """With the children of shards that were read to their end, from `first` on.

    Ended shards whose records are not kept any more are left out.
    """
    found = list(shards)
    known = {each.id for each in found}
    kept = {id_: place for id_, place in places.items() if place != END or id_ in known}
    for each in found:
        ended = [places.get(parent) == END for parent in each.parents]
        if each.id not in kept and ended and all(ended):
            kept[each.id] = first
    return kept


def _rank(place: str) -> tuple[int, float | int]:
    if place == END:
        return (2, 0)
    if place.isdecimal():
        return (1, int(place))
    return (0, 0)
