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


ANN, BOB = {"id": 1, "name": "ann"}, {"id": 2, "name": "bob"}
EVENTS = [
    {"op": "r", "after": ANN}, {"op": "c", "after": BOB},
    {"op": "c", "after": {"id": 3, "name": "c"}},
    {"op": "u", "before": ANN, "after": {"id": 1, "name": "hidden"}},
    {"op": "u", "after": {"id": 3, "name": "hidden"}}, {"op": "t"},
    {"op": "d", "before": {"id": 2}}, {"op": "d", "before": {"id": 9}},
    {"op": "c", "after": {"id": 4, "name": "d"}},
    {"op": "u", "before": {"id": 4, "name": "d"}, "after": {"id": 5, "name": "d"}},
    {"op": "c", "after": {"id": 6, "name": "hidden"}},
    {"op": "u", "before": {"id": 6, "name": "hidden"}, "after": {"id": 6, "name": "shown"}},
]  # fmt: skip
KEPT = {5: "D", 6: "SHOWN"}


def payloads() -> list[str]:
    return [json.dumps(event) for event in EVENTS]


@pytest.mark.parametrize("batches", [1, 5])
@pytest.mark.parametrize(
    "steps",
    [
        [{"type": "filter", "where": "name <> 'hidden'"},
         {"type": "select", "columns": ["id", "upper(name) AS name"]}],
        [{"type": "sql", "sql": "SELECT id, upper(name) AS name FROM rows WHERE name <> 'hidden'"}],
        [{"type": "sql", "sql": "WITH some AS (SELECT * FROM rows WHERE name <> 'hidden') "
                                "SELECT id, upper(some.name) AS name FROM some"}],
    ],
    ids=["filter", "sql", "cte"],
)  # fmt: skip
def test_a_filter_of_changes_deletes(
    tmp_path: Path, penstock_spark: SparkSession, steps: list[dict[str, Any]], batches: int
) -> None:
    nodes, above = {}, "rows"
    for number, step in enumerate(steps):
        origin = {} if step["type"] == "sql" else {"from": above}
        above = f"step{number}"
        nodes[above] = {**origin, **step}
    spec = {
        "runtime": {"state": str(tmp_path / "state")},
        "sources": {"rows": {"type": "memory", "payloads": payloads(), "batches": batches,
                             "schema": "id INT NOT NULL, name STRING", "primary_key": "id",
                             "format": "debezium_json"}},
        "transforms": nodes,
        "sinks": {"out": {"type": "memory", "from": above, "mode": "upsert",
                          "name": tmp_path.name}},
    }  # fmt: skip
    path = tmp_path / "changes.json"
    path.write_text(json.dumps(spec))
    plan = app.plan(path)
    outcome = app.run(plan, spark=penstock_spark.newSession())
    assert (outcome.ending, outcome.errors) == ("complete", {})
    table = memory.tables[tmp_path.name]
    assert table.column_names == ["id", "name"]
    assert {row["id"]: row["name"] for row in table.to_pylist()} == KEPT
    letters = DeadLetters(plan.state / "dead_letters").read().to_pylist()
    assert [letter["code"] for letter in letters] == ["unknown-operation"]


def test_changes_in_a_script(tmp_path: Path, penstock_spark: SparkSession) -> None:
    """Writes a keyed table by position, and a file of change events."""
    (tmp_path / "events.jsonl").write_text("\n".join(payloads()))
    script = tmp_path / "shop.sql"
    script.write_text(f"""
        CREATE TABLE events (
            id INT PRIMARY KEY, name STRING, name2 STRING GENERATED ALWAYS AS (name || '!')
        )
        WITH (connector = 'files', path = 'events.jsonl', format = 'debezium_json');
        CREATE VIEW visible AS
        SELECT id, upper(name) AS name, name2 FROM events WHERE name <> 'hidden';
        CREATE TABLE kept (key INT PRIMARY KEY, title STRING)
        WITH (connector = 'memory', name = '{tmp_path.name}');
        CREATE TABLE log (key INT PRIMARY KEY, title STRING)
        WITH (connector = 'files', path = 'log', format = 'debezium_json');
        INSERT INTO kept SELECT id, name FROM visible;
        INSERT INTO log (title, key) SELECT name2, id FROM visible;
    """)
    outcome = app.run(app.plan(script), spark=penstock_spark.newSession())
    assert (outcome.ending, outcome.errors) == ("complete", {})
    table = memory.tables[tmp_path.name]
    assert table.column_names == ["key", "title"]
    assert {row["key"]: row["title"] for row in table.to_pylist()} == KEPT
    (file,) = (tmp_path / "log").glob("*.jsonl")
    events = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(e["op"], (e["before"] or {}).get("key"), (e["after"] or {}).get("key"))
            for e in events] == [
        ("c", None, 1), ("c", None, 2), ("c", None, 3), ("d", 1, None), ("d", 3, None),
        ("d", 2, None), ("d", 9, None), ("c", None, 4), ("d", 4, None), ("c", None, 5),
        ("u", None, 6),
    ]  # fmt: skip


def test_conditions_on_complete_changes(tmp_path: Path, penstock_spark: SparkSession) -> None:
    """A script of Arroyo, whose events have complete rows before, deletes no unknown rows."""
    ann, bob = {"id": 1, "name": "ann", "x": 5}, {"id": 2, "name": "bob", "x": 1}
    events = [
        {"op": "c", "before": None, "after": ann}, {"op": "c", "before": None, "after": bob},
        {"op": "u", "before": bob, "after": {**bob, "x": 2}},
        {"op": "u", "before": {**bob, "x": 2}, "after": {**bob, "x": 7}},
        {"op": "u", "before": ann, "after": {**ann, "x": 6}},
        {"op": "u", "before": {**ann, "x": 6}, "after": {**ann, "x": 3}},
        {"op": "d", "before": {**ann, "x": 3}, "after": None},
        {"op": "d", "before": {**bob, "x": 7}, "after": None},
    ]  # fmt: skip
    (tmp_path / "events.jsonl").write_text("\n".join(map(json.dumps, events)))
    script = tmp_path / "users.sql"
    script.write_text("""
        CREATE TABLE users (id BIGINT PRIMARY KEY, name TEXT, x INT) WITH (
            connector = 'single_file', path = 'events.jsonl', format = 'debezium_json',
            type = 'source');
        CREATE TABLE log (name TEXT, x INT) WITH (
            connector = 'single_file', path = 'log', format = 'debezium_json', type = 'sink');
        INSERT INTO log SELECT name, x FROM users WHERE x > 4;
    """)
    outcome = app.run(app.plan(script), spark=penstock_spark.newSession())
    assert (outcome.ending, outcome.errors) == ("complete", {})
    file = tmp_path / "log"
    written = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(each["op"], each["before"], each["after"]) for each in written] == [
        ("c", None, {"name": "ann", "x": 5}), ("c", None, {"name": "bob", "x": 7}),
        ("u", {"name": "ann", "x": 5}, {"name": "ann", "x": 6}),
        ("d", {"name": "ann", "x": 6}, None), ("d", {"name": "bob", "x": 7}, None),
    ]  # fmt: skip
