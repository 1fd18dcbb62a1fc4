"""Limits of a batch over the partitions of a topic."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from penstock.connectors.kafka.offsets import Partition, TopicOffsets, limit_offsets


def offsets(*numbers: int) -> TopicOffsets:
    return TopicOffsets({Partition("t", index): number for index, number in enumerate(numbers)})


def by_partition(found: TopicOffsets) -> Mapping[int, int]:
    return {partition.number: offset for partition, offset in found.offsets.items()}


@pytest.mark.parametrize(
    ("ends", "max_records", "limited"),
    [
        ((4, 4), 10, (4, 4)),
        ((60, 20, 20), 10, (6, 2, 2)),
        ((3, 5), 1, (0, 1)),
        ((1, 1, 98), 10, (0, 0, 10)),
        ((0, 7), 2, (0, 2)),
    ],
)
def test_partitions_with_the_largest_lag_are_first(
    ends: tuple[int, ...], max_records: int, limited: tuple[int, ...]
) -> None:
    start = offsets(*[0] * len(ends))
    found = limit_offsets(start, offsets(*ends), max_records)
    assert by_partition(found) == dict(enumerate(limited))


def test_single_records_alternate_between_equal_partitions() -> None:
    start, end = offsets(0, 0), offsets(3, 3)
    order = []
    while start != end:
        following = limit_offsets(start, end, 1)
        before, after = by_partition(start), by_partition(following)
        order += [number for number in after if after[number] != before[number]]
        start = following
    assert order == [0, 1, 0, 1, 0, 1]
