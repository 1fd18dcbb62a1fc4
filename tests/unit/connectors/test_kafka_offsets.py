"""Limits of a batch over the partitions of a topic."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.connectors.kafka import discovery
from penstock.connectors.kafka.config import KafkaSourceConfig
from penstock.connectors.kafka.discovery import Topics
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


def test_a_recreated_topic_has_lower_offsets() -> None:
    before = TopicOffsets({Partition("t", 0): 9}, {"t": "a"})
    assert before.exceeds(TopicOffsets({Partition("t", 0): 3}, {"t": "a"}))
    assert before.exceeds(TopicOffsets({}, {}))
    recreated = TopicOffsets({Partition("t", 0): 3, Partition("u", 0): 1}, {"t": "b"})
    assert not before.exceeds(recreated)
    assert list(before.ranges(recreated)) == [
        (Partition("t", 0), None, 3),
        (Partition("u", 0), None, 1),
    ]


def test_a_start_time_is_in_milliseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    partitions = [Partition("t", 0), Partition("t", 1)]

    def list_offsets(specs: Mapping[Any, Any], **_: Any) -> dict[Any, Any]:
        asked.extend(getattr(spec, "timestamp", None) for spec in specs.values())
        found = (7, -1) if len(specs) > 1 else (9,)
        return {
            partition: SimpleNamespace(result=lambda timeout, at=at: SimpleNamespace(offset=at))
            for partition, at in zip(specs, found, strict=True)
        }

    admin = SimpleNamespace(
        client=SimpleNamespace(list_offsets=list_offsets), request=lambda action, call: call(1.0)
    )
    monkeypatch.setattr(discovery, "Admin", lambda config: admin)
    topics = Topics(KafkaSourceConfig(brokers="b:1", topic="t"))
    start = datetime(2024, 1, 1, 0, 0, 0, 250_000, UTC)
    assert topics.since(partitions, start) == {partitions[0]: 7, partitions[1]: 9}
    assert asked == [1_704_067_200_250, 1_704_067_200_250, None]
