"""Division of a batch among the writers of a sink, by key and in source order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from penstock.connectors.memory import MemorySink
from penstock.connectors.memory.sink import MemorySinkConfig, _unpack
from penstock.engine.sinks.sink import SinkTask
from penstock.engine.sinks.sink_rows import write_rows
from penstock.engine.tasks.dead_letter_writer import Spool
from penstock.sdk import BatchId, Context

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
ROWS, KEYS = 400, 7


def write(spark: SparkSession, sink: MemorySink, key: str) -> list[list[dict[str, Any]]]:
    """Writes rows of four partitions. Returns the rows of each writer."""
    frame = spark.range(0, ROWS, 1, 4).selectExpr(f"{key} AS key", "id AS version")
    task = SinkTask.of(sink, Spool("p", "q", "out", "sink"))
    receipts = write_rows(sink, task, frame, BatchId("q", 0), None)
    return [_unpack(receipt).to_pylist() for receipt in receipts]


@pytest.fixture
def sink() -> MemorySink:
    return MemorySink(MemorySinkConfig(), Context("p", "out"))


def test_rows_that_overwrite_each_other_have_one_writer(
    sink: MemorySink, penstock_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemorySink, "overwriting_columns", ["key"])
    writers = write(penstock_spark, sink, f"id % {KEYS}")
    keys = [key for rows in writers for key in {row["key"] for row in rows}]
    assert sorted(keys) == [*range(KEYS)], "each key has one writer"
    for rows in writers:
        versions = [row["version"] for row in rows]
        assert versions == sorted(versions)
    assert sum(map(len, writers)) == ROWS


def test_rows_of_a_constant_key_have_one_writer(
    sink: MemorySink, penstock_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemorySink, "overwriting_columns", [])
    (rows,) = write(penstock_spark, sink, "id")
    assert [row["version"] for row in rows] == [*range(ROWS)]


def test_an_upsert_keeps_all_rows_with_null_in_the_key(
    sink: MemorySink, penstock_spark: SparkSession
) -> None:
    """Each of them is rejected by a system that requires a key."""
    sink.mode, sink.primary_key = "upsert", ("key",)
    written = [
        row for rows in write(penstock_spark, sink, "if(id < 390, NULL, id)") for row in rows
    ]
    assert sorted(row["version"] for row in written) == [*range(ROWS)]
    assert sum(row["key"] is None for row in written) == 390
