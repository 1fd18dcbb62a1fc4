"""Whole pipelines over several runs: a directory that grows, a failing end, a changed pipeline."""

from __future__ import annotations

import random
from typing import Any

import polars as pl
import pytest
from pipelines import Row, Workspace, assert_same_rows, at, dump

from penstock.connectors import memory
from penstock.connectors.memory.sink import MemorySink
from penstock.core.errors import Permanent, StateError
from penstock.sdk import BatchId

pytestmark = pytest.mark.spark

READINGS = """
sources:
  readings:
    type: files
    path: readings/*.jsonl
    watch: true
    schema: id BIGINT, sensor STRING, value BIGINT, at TIMESTAMP
    watermark: {column: at, delay: 1 minute}
transforms:
  high: {type: filter, from: readings, where: value >= 500}
  means:
    type: sql
    sql: |
      SELECT window.start AS start, sensor, count(*) AS n, max(value) AS highest
      FROM readings GROUP BY window(at, '5 minutes'), sensor
sinks:
  high_out: {type: memory, from: high}
  means_out: {type: memory, from: means}
"""


def readings(count: int, seed: int) -> list[Row]:
    chance = random.Random(seed)
    return [
        {
            "id": number,
            "sensor": f"s{chance.randrange(5)}",
            "value": chance.randrange(1000),
            "at": at(5 * number + chance.randrange(60)),
        }
        for number in range(count)
    ]


def closed_windows(rows: list[Row], minutes: int = 5) -> pl.DataFrame:
    """Returns the windows that end by the last time less the delay."""
    frame = pl.DataFrame(rows)
    start = pl.col("at").dt.truncate(f"{minutes}m").alias("start")
    ends_by = frame["at"].max() - pl.duration(minutes=1)  # type: ignore[operator]
    windows = frame.group_by(start, "sensor").agg(
        pl.len().alias("n"), pl.col("value").max().alias("highest")
    )
    return windows.filter(pl.col("start") + pl.duration(minutes=minutes) <= ends_by)


def test_a_directory_that_grows(workspace: Workspace) -> None:
    """Files appear before, during and after a run."""
    rows = readings(600, seed=21)
    high = pl.DataFrame(rows).filter(pl.col("value") >= 500)
    workspace.put_rows("readings", rows[:100], 1)
    handle = workspace.start(READINGS)
    try:
        for first in range(100, 400, 100):
            workspace.await_rows(handle, "high_out", len(high.filter(pl.col("id") < first)))
            workspace.put(f"readings/{first}.jsonl", map(dump, rows[first : first + 100]))
        workspace.await_rows(handle, "high_out", len(high.filter(pl.col("id") < 400)))
    finally:
        handle.stop()
    outcome = handle.wait(60)
    assert outcome is not None and (outcome.ending, outcome.errors) == ("stopped", {})
    workspace.put("readings/_incomplete.jsonl", ["{"])
    workspace.put("readings/400.jsonl", map(dump, rows[400:]))
    workspace.run(READINGS, until="caught_up")
    assert_same_rows(workspace.result("high_out"), high)
    assert_same_rows(workspace.result("means_out"), closed_windows(rows))
    assert workspace.dead_letters() == []


BOUNDED = """
sources:
  readings:
    type: files
    path: readings/*.jsonl
    max_files: 2
    order: name
    schema: id BIGINT, sensor STRING, value BIGINT, at TIMESTAMP
    watermark: {column: at, delay: 100 days}
transforms:
  means:
    type: sql
    sql: |
      SELECT window.start AS start, sensor, count(*) AS n, max(value) AS highest
      FROM readings GROUP BY window(at, '5 minutes'), sensor
sinks:
  means_out: {type: memory, from: means}
"""


def test_a_run_that_fails_while_it_closes_windows(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run writes the windows of the rows that have been read, and reads no others."""
    rows = readings(300, seed=23)
    workspace.put_rows("readings", rows[:200], 3)
    commit = MemorySink.commit

    def fail_after_the_last_rows(sink: MemorySink, batch: BatchId, receipts: Any) -> None:
        if batch.number == 2:
            raise Permanent("the table is full", code="write-failed")
        commit(sink, batch, receipts)

    with monkeypatch.context() as patched:
        patched.setattr(MemorySink, "commit", fail_after_the_last_rows)
        outcome = workspace.start(BOUNDED).wait(60)
        assert outcome is not None and outcome.ending == "failed"
    assert "means_out" not in memory.tables
    workspace.put("readings/9.jsonl", map(dump, rows[200:]))
    assert workspace.run(BOUNDED).ending == "complete"
    windows = closed_windows([*rows[:200], {**rows[0], "at": at(10**6)}])
    assert_same_rows(workspace.result("means_out"), windows)


def test_a_changed_pipeline(workspace: Workspace) -> None:
    """A changed filter applies to new rows. A changed window is an error without effect on the
    state, and `fresh` reads all rows again."""
    rows = readings(300, seed=22)
    changed = READINGS.replace(
        "{type: filter, from: readings, where: value >= 500}",
        "{type: sql, sql: 'SELECT *, 2 * value AS twice FROM readings WHERE value >= 800'}",
    )
    rewindowed = changed.replace("5 minutes", "10 minutes")
    workspace.put("readings/0.jsonl", map(dump, rows[:100]))
    workspace.run(READINGS, until="caught_up")
    workspace.put("readings/1.jsonl", map(dump, rows[100:200]))
    with pytest.raises(StateError) as raised:
        workspace.run(rewindowed, until="caught_up")
    assert raised.value.code == "changed-plan"
    workspace.run(changed, until="caught_up")
    frame, value = pl.DataFrame(rows), pl.col("value")
    before = frame[:100].filter(value >= 500)
    after = frame.filter(value >= 800).with_columns((2 * value).alias("twice"))
    expected = pl.concat([before, after.filter(pl.col("id").is_between(100, 199))], how="diagonal")
    assert_same_rows(workspace.result("high_out"), expected)
    assert_same_rows(workspace.result("means_out"), closed_windows(rows[:200]))

    memory.clear()
    workspace.put("readings/2.jsonl", map(dump, rows[200:]))
    workspace.run(rewindowed, until="caught_up", fresh=True)
    assert_same_rows(workspace.result("high_out"), after)
    assert_same_rows(workspace.result("means_out"), closed_windows(rows, minutes=10))
