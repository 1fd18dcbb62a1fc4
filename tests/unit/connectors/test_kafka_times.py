"""Timestamps of Kafka records that a TIMESTAMP cannot hold."""

from __future__ import annotations

from typing import Any

from penstock.connectors.kafka.metadata import PartitionRecords, record_batch, with_valid_times
from penstock.connectors.kafka.offsets import Partition
from penstock.sdk import Read


class Record:
    """A record of a consumer: an offset and a timestamp in milliseconds."""

    def __init__(self, offset: int, time: int) -> None:
        self._offset, self._time = offset, time

    def timestamp(self) -> tuple[int, int]:
        return 1, self._time

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes:
        return b"{}"

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 0


def records(*times: int) -> list[PartitionRecords]:
    made: list[Any] = [Record(offset, time) for offset, time in enumerate(times)]
    return [PartitionRecords(Partition("t", 0), made)]


def test_a_timestamp_that_overflows_is_a_bad_record() -> None:
    read = Read(None, (), ("timestamp",))
    valid = list(with_valid_times(records(1, 2**63 - 1, -(2**63), 2), read))
    rows = record_batch(valid, read.metadata)
    assert rows.column("position").to_pylist() == [0, 3]
    assert [(bad.origin, bad.position, bad.error.code) for bad in read.bad] == [
        ("t:0", 1, "invalid-timestamp"),
        ("t:0", 2, "invalid-timestamp"),
    ]


def test_records_of_invalid_times_alone_are_no_rows() -> None:
    assert list(with_valid_times(records(2**62), Read(None, (), ("timestamp",)))) == []
