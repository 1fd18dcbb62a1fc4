"""Metadata of records that their origin and position determine, for replays of dead letters."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from penstock.connectors.aws.kinesis.source import KinesisSource
from penstock.connectors.files.reader import path_metadata
from penstock.connectors.kafka.source import KafkaSource
from penstock.connectors.memory import MemorySource
from penstock.connectors.pulsar.source import TopicSource
from penstock.connectors.redis.stream import StreamSource


@pytest.mark.parametrize(
    ("source", "origin", "position", "expected"),
    [
        (MemorySource, "memory", 4, {"origin": "memory", "position": 4}),
        (KafkaSource, "a:b:3", 17, {"topic": "a:b", "partition": 3, "offset": 17}),
        (KinesisSource, "s/shard-1/495", 0, {"shard": "shard-1", "sequence_number": "495"}),
        (
            TopicSource,
            "persistent://public/default/orders-partition-2",
            9,
            {"topic": "persistent://public/default/orders", "partition": 2},
        ),
        (
            StreamSource,
            "orders:eu:1700000000000",
            -1,
            {
                "stream": "orders:eu",
                "id": f"1700000000000-{2**64 - 1}",
                "timestamp": datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC),
            },
        ),
    ],
)
def test_metadata_of_an_origin(
    source: Any, origin: str, position: int, expected: dict[str, Any]
) -> None:
    assert source.record_metadata(object(), origin, position) == expected


def test_the_path_of_a_truncated_file_is_unknown() -> None:
    assert path_metadata("/in/a.jsonl", True) == {"path": "/in/a.jsonl", "name": "a.jsonl"}
    assert path_metadata("/in/a#1", False) == {"path": "/in/a#1", "name": "a#1"}
    assert path_metadata("/in/a.jsonl#1", True) == {}
