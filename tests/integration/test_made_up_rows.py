"""Sources of made-up rows in a pipeline: their columns and metadata through Spark."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from penstock import app
from penstock.connectors import memory

pytestmark = pytest.mark.spark


def ran(directory: Path, spark: Any, source: Any, query: str) -> list[Any]:
    kept = f"kept-{uuid.uuid4().hex}"
    document = {
        "name": "made_up",
        "runtime": {"state": str(directory / "runs")},
        "sources": {"events": source},
        "transforms": {"chosen": {"type": "sql", "sql": query}},
        "sinks": {"out": {"type": "memory", "name": kept, "from": "chosen"}},
    }
    file = directory / "made_up.yaml"
    file.write_text(json.dumps(document))
    outcome = app.run(
        app.plan(file), spark=spark.newSession(), options=app.RunOptions(until="caught_up")
    )
    assert not outcome.errors
    return list(memory.tables[kept].to_pylist())


def test_nexmark(tmp_path: Path, penstock_spark: Any) -> None:
    source = {"type": "nexmark", "rows": 500, "max_records": 120, "partitions": 2}
    rows = ran(
        tmp_path,
        penstock_spark,
        {**source, "metadata": {"at": "time"}},
        "SELECT person.id AS person, auction.id AS auction, bid.price AS price, at,"
        " coalesce(person.datetime, auction.datetime, bid.datetime) AS datetime FROM events",
    )
    assert sorted(row["person"] for row in rows if row["person"]) == [*range(1000, 1010)]
    assert sorted(row["auction"] for row in rows if row["auction"]) == [*range(1000, 1030)]
    assert sum(row["price"] is not None for row in rows) == 460
    begin = dt.datetime(2015, 7, 15, tzinfo=dt.UTC)
    times = [begin + dt.timedelta(microseconds=100 * n) for n in range(500)]
    assert sorted(row["at"] for row in rows) == times
    assert all(row["at"] == row["datetime"] for row in rows)


def test_impulse(tmp_path: Path, penstock_spark: Any) -> None:
    source = {"type": "impulse", "rows": 50, "max_records": 20, "subtasks": 2}
    rows = ran(tmp_path, penstock_spark, source, "SELECT counter, subtask_index FROM events")
    found = sorted((row["subtask_index"], row["counter"]) for row in rows)
    assert found == [(subtask, counter) for subtask in (0, 1) for counter in range(25)]
