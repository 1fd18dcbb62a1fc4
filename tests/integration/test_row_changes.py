"""Row operations and upserts, from a source to a sink."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock import app
from penstock.connectors import memory
from penstock.runtime.dead_letters import DeadLetters

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CHANGES = [
    {"op": "i", "id": 1, "name": "a"}, {"op": "i", "id": 2, "name": "b"},
    {"op": "ub", "id": 1, "name": "a"}, {"op": "u", "id": 1, "name": "a2"},
    {"op": "i", "id": 3, "name": "c"}, {"op": "x", "id": 2, "name": "bad"},
    {"op": "d", "id": 2, "name": None}, {"op": "i", "id": 4, "name": "d"},
    {"op": "d", "id": 3, "name": None}, {"op": "i", "id": 3, "name": "c2"},
    {"op": "ub", "id": 4, "name": "d"}, {"op": "u", "id": 4, "name": "d2"},
]  # fmt: skip


@pytest.mark.parametrize("batches", [1, 3])
def test_operations_are_applied_in_source_order(
    tmp_path: Path, penstock_spark: SparkSession, batches: int
) -> None:
    plan = app.plan(pipeline(tmp_path, CHANGES, batches, operation_column="op"))
    outcome = app.run(plan, spark=penstock_spark.newSession())
    assert (outcome.ending, outcome.errors) == ("complete", {})
    table = memory.tables[tmp_path.name]
    assert table.column_names == ["id", "name"]
    assert {row["id"]: row["name"] for row in table.to_pylist()} == {1: "a2", 3: "c2", 4: "d2"}
    letters = DeadLetters(plan.state / "dead_letters").read().to_pylist()
    assert [(each["node"], each["code"]) for each in letters] == [("out", "unknown-operation")]
    assert json.loads(letters[0]["payload"]) == {"op": "x", "id": 2, "name": "bad"}


def test_the_last_row_of_a_key_is_written_once(
    tmp_path: Path, penstock_spark: SparkSession
) -> None:
    rows = [{"id": number % 7, "name": str(number)} for number in range(200)]
    plan = app.plan(pipeline(tmp_path, rows, 2))
    outcome = app.run(plan, spark=penstock_spark.newSession())
    assert (outcome.ending, outcome.errors) == ("complete", {})
    found = {row["id"]: row["name"] for row in memory.tables[tmp_path.name].to_pylist()}
    assert found == {number % 7: str(number) for number in range(193, 200)}
    assert memory.tables[tmp_path.name].num_rows == 7


def test_a_plan_runs_twice(tmp_path: Path, penstock_spark: SparkSession) -> None:
    plan = app.plan(pipeline(tmp_path, [{"id": 1, "name": "a"}], 1))
    before = {name: dict(vars(node.component)) for name, node in plan.nodes.items()}
    for _ in range(2):
        options = app.RunOptions(fresh=True)
        outcome = app.run(plan, spark=penstock_spark.newSession(), options=options)
        assert (outcome.ending, outcome.errors) == ("complete", {})
    assert {name: dict(vars(node.component)) for name, node in plan.nodes.items()} == before


def pipeline(directory: Path, rows: list[dict[str, Any]], batches: int, **source: Any) -> Path:
    """Writes a pipeline whose sink upserts by the key of the source."""
    columns = (
        "op STRING, id INT, name STRING" if "operation_column" in source else "id INT, name STRING"
    )
    path = directory / "changes.json"
    spec = {
        "name": "changes",
        "runtime": {"state": str(directory / "state")},
        "sources": {"rows": {"type": "memory", "rows": rows, "batches": batches, "partitions": 3,
                             "schema": columns, "primary_key": "id", **source}},
        "transforms": {"kept": {"type": "filter", "from": "rows", "where": "id > -1"}},
        "sinks": {"out": {"type": "memory", "from": "kept", "mode": "upsert",
                          "name": directory.name}},
    }  # fmt: skip
    path.write_text(json.dumps(spec))
    return path
