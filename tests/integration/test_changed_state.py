"""Pipelines that change with their state: columns are found by name, or the run is an error."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from pipelines import Row, Workspace, dump

from penstock.core.errors import StateError

pytestmark = pytest.mark.spark

UPDATING = """\
runtime: {partitions: 1}
sources:
  changes: {type: files, path: "changes/*", order: name, watch: true, format: json,
            operation_column: op, primary_key: id, schema: "id INT, k INT, x INT, op STRING"}
  rows: {type: files, path: "rows/*", order: name, watch: true, format: json,
         schema: "id INT, k INT, x INT"}
  more: {type: files, path: "more/*", order: name, watch: true, format: json,
         schema: "k INT, z INT"}
transforms:
  sums: {type: sql, sql: "SELECT k, sum(x) AS s, count(*) AS n FROM changes GROUP BY k"}
  highest: {type: sql, sql: "SELECT k, max(x) AS m FROM changes GROUP BY k"}
  distinct: {type: sql, sql: "SELECT DISTINCT * EXCEPT (id) FROM rows"}
  matched: {type: sql, sql: "SELECT r.k, r.x, m.z FROM rows r LEFT JOIN more m ON r.k = m.k"}
sinks:
  sums_out: {type: files, from: sums, path: sums, format: debezium_json}
  highest_out: {type: files, from: highest, path: highest, format: debezium_json}
  distinct_out: {type: files, from: distinct, path: distinct, format: debezium_json}
  matched_out: {type: files, from: matched, path: matched, format: debezium_json}
"""
STREAMS = """\
runtime: {partitions: 1}
sources:
  rows: {type: files, path: "rows/*", order: name, watch: true, format: json,
         schema: "id INT, k INT, x INT"}
  more: {type: files, path: "more/*", order: name, watch: true, format: json,
         schema: "k INT, z INT"}
transforms:
  wide: {type: sql, sql: "SELECT id, k, x FROM rows"}
  joined: {type: sql, sql: "SELECT w.*, m.z FROM wide w JOIN more m ON w.k = m.k"}
  unique: {type: dedupe, from: wide, within: forever}
sinks:
  joined_out: {type: files, from: joined, path: joined, format: json}
  unique_out: {type: files, from: unique, path: unique, format: json}
"""
BATCHES: list[dict[str, list[Row]]] = [
    {
        "changes": [
            {"id": 1, "k": 1, "x": 10, "op": "i"},
            {"id": 2, "k": 2, "x": 20, "op": "i"},
            {"id": 3, "k": 1, "x": 30, "op": "i"},
        ],
        "rows": [{"id": 1, "k": 1, "x": 10}, {"id": 2, "k": 2, "x": 1}],
        "more": [{"k": 1, "z": 100}],
    },
    {
        "changes": [
            {"id": 3, "k": 2, "x": 7, "op": "u"},
            {"id": 2, "op": "d"},
            {"id": 4, "k": 1, "x": 1, "op": "i"},
        ],
        "rows": [{"id": 2, "k": 2, "x": 1}, {"id": 3, "k": 1, "x": 2}],
        "more": [{"k": 2, "z": 200}],
    },
]


def put(workspace: Workspace, number: int) -> None:
    for name, rows in BATCHES[number].items():
        workspace.put(f"{name}/{number}.jsonl", map(dump, rows))


def tables(workspace: Workspace) -> dict[str, list[Row]]:
    """Returns the rows that remain after all changes of each result."""
    found = {}
    for name in EXPECTED.keys() & {path.name for path in workspace.root.iterdir()}:
        rows: Counter[str] = Counter()
        for path in sorted((workspace.root / name).glob("part-*")):
            for line in path.read_text("utf-8").splitlines():
                change = json.loads(line)
                if "op" not in change:
                    change = {"before": None, "after": change}
                for side, weight in (("before", -1), ("after", 1)):
                    if change[side] is not None:
                        rows[json.dumps(change[side], sort_keys=True)] += weight
        assert all(count >= 0 for count in rows.values()), rows
        found[name] = [json.loads(row) for row in sorted(rows.elements())]
    return found


EXPECTED = {
    "sums": [{"k": 1, "n": 2, "s": 11}, {"k": 2, "n": 1, "s": 7}],
    "highest": [{"k": 1, "m": 10}, {"k": 2, "m": 7}],
    "distinct": [{"k": 1, "x": 10}, {"k": 1, "x": 2}, {"k": 2, "x": 1}],
    "matched": [
        {"k": 1, "x": 10, "z": 100}, {"k": 1, "x": 2, "z": 100},
        {"k": 2, "x": 1, "z": 200}, {"k": 2, "x": 1, "z": 200},
    ],
    "joined": [
        {"id": 1, "k": 1, "x": 10, "z": 100}, {"id": 2, "k": 2, "x": 1, "z": 200},
        {"id": 2, "k": 2, "x": 1, "z": 200}, {"id": 3, "k": 1, "x": 2, "z": 100},
    ],
    "unique": [
        {"id": 1, "k": 1, "x": 10}, {"id": 2, "k": 2, "x": 1}, {"id": 3, "k": 1, "x": 2},
    ],
}  # fmt: skip


INCOMPATIBLE = {
    "another key": ("primary_key: id", "primary_key: [k, id]", "primary_key changed"),
    "another type": ("k INT, x INT, op", "k INT, x LONG, op", '"x" was int and is bigint'),
    "a column more, which is kept": (
        'x INT"}\n  more', 'x INT, y INT"}\n  more', 'transform "distinct": primary_key changed',
    ),
    "another setting": (
        "partitions: 1", "partitions: 1, spark: {spark.sql.ansi.enabled: false}",
        "spark.sql.ansi.enabled changed",
    ),
}  # fmt: skip


def assert_incompatible(workspace: Workspace, pipeline: str, reason: str) -> None:
    with pytest.raises(StateError) as raised:
        workspace.start(pipeline, until="caught_up").wait(60)
    assert raised.value.code == "changed-plan"
    assert reason in str(raised.value.detail)


def test_columns_of_updating_queries_are_found_by_name(workspace: Workspace) -> None:
    put(workspace, 0)
    workspace.run(UPDATING, until="caught_up")
    put(workspace, 1)
    for old, new, reason in INCOMPATIBLE.values():
        assert old in UPDATING
        assert_incompatible(workspace, UPDATING.replace(old, new), reason)
    added = "x INT, op STRING, y INT, k INT, id INT"
    order = UPDATING.replace("id INT, k INT, x INT, op STRING", added)
    order = order.replace("id INT, k INT, x INT", "x INT, k INT, id INT")
    workspace.run(order, until="caught_up")
    names = ("sums", "highest", "distinct", "matched")
    assert tables(workspace) == {name: EXPECTED[name] for name in names}


def test_columns_of_streams_are_compared_by_name(workspace: Workspace) -> None:
    put(workspace, 0)
    workspace.run(STREAMS, until="caught_up")
    put(workspace, 1)
    order = STREAMS.replace("SELECT id, k, x FROM rows", "SELECT k, id, x FROM rows")
    assert_incompatible(workspace, order, "columns have another order")
    workspace.run(STREAMS, until="caught_up")
    assert tables(workspace) == {name: EXPECTED[name] for name in ("joined", "unique")}
