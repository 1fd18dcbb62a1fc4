"""Impulses: counters by row number, times by the clock."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from option_errors import Case, assert_option_error
from penstock.connectors.impulse import ImpulseSource, ImpulseSourceConfig
from penstock.sdk import Context, Read

BEGIN = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def rows(first: int, last: int, **options: Any) -> list[Any]:
    of = ImpulseSource(ImpulseSourceConfig.model_validate(options), Context())
    at = {**of.initial_offset(), "rows": first, "row": 0, "time": 0}
    read = Read(metadata=("time",))
    return [
        row
        for part in of.partitions(at, {**at, "rows": last})
        for batch in of.read(part, read)
        for row in batch.to_pylist()
    ]


def test_one_counter() -> None:
    found = [(row["counter"], row["subtask_index"]) for row in rows(5, 8)]
    assert found == [(5, 0), (6, 0), (7, 0)]


def test_subtasks_count_in_turn() -> None:
    found = [(row["counter"], row["subtask_index"]) for row in rows(2, 7, subtasks=3)]
    assert found == [(0, 2), (1, 0), (1, 1), (1, 2), (2, 0)]


def test_ranges_and_partitions_do_not_matter() -> None:
    options = {"subtasks": 3, "start_time": BEGIN}
    parted = {**options, "partitions": 4}
    assert rows(0, 31, **parted) + rows(31, 100, **parted) == rows(0, 100, **options)


@pytest.mark.parametrize(
    "options, begin, step",
    [
        ({}, EPOCH, 1),
        ({"rate": 10}, EPOCH, 0.1),
        ({"rate": 10, "interval": "1m"}, EPOCH, 60),
        ({"rate": 10, "start_time": "2024-01-01T00:00:00"}, BEGIN, 0.1),
    ],
)
def test_times(options: Any, begin: dt.datetime, step: float) -> None:
    times = [row["time"] for row in rows(0, 50, **options)]
    assert times == [begin + dt.timedelta(seconds=n * step) for n in range(50)]


@pytest.mark.parametrize(
    "case",
    [
        ({"subtasks": 0}, "subtasks", "greater than or equal to 1"),
        ({"interval": "0s"}, "interval", "greater than 0"),
        ({"rate": 0}, "rate", "greater than 0"),
    ],
)
def test_invalid_options(case: Case) -> None:
    assert_option_error(ImpulseSourceConfig, {}, case)
