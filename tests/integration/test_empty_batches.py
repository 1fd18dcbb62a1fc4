"""Batches of updating queries without rows: skipped, unless the query has rows without input."""

from __future__ import annotations

import json

import pytest
from pipelines import Workspace, dump

pytestmark = pytest.mark.spark

PIPELINE = """\
runtime: {partitions: 1}
sources:
  rows: {type: files, path: "rows/*", watch: true, format: json, schema: "k INT"}
  names: {type: files, path: names.csv, schema: "k INT, name STRING", static: true}
transforms:
  result: {type: sql, sql: "%s"}
sinks:
  out: {type: files, from: result, path: out, format: debezium_json}
"""
MERGED = "SELECT k, sum(n) AS n FROM (SELECT k, 1 AS n FROM rows UNION ALL %s) GROUP BY k"
QUERIES = {
    "groups": ("SELECT k, count(*) AS n FROM rows GROUP BY k", True, [], [{"k": 2, "n": 1}]),
    "rows of a table with a match": (
        MERGED % "SELECT k, 10 AS n FROM names LEFT SEMI JOIN rows USING (k)",
        True,
        [],
        [{"k": 2, "n": 11}],
    ),
    "no groups": ("SELECT count(*) AS n FROM rows", False, [{"n": 0}], [{"n": 1}]),
    "rows of a table": (
        MERGED % "SELECT k, 10 AS n FROM names",
        False,
        [{"k": 1, "n": 10}, {"k": 2, "n": 10}],
        [{"k": 1, "n": 10}, {"k": 2, "n": 11}],
    ),
}


def table(workspace: Workspace) -> list[object]:
    rows: list[object] = []
    for path in sorted((workspace.root / "out").glob("part-*")):
        for line in path.read_text("utf-8").splitlines():
            change = json.loads(line)
            if change["before"] is not None:
                rows.remove(change["before"])
            if change["after"] is not None:
                rows.append(change["after"])
    return sorted(rows, key=str)


@pytest.mark.parametrize("name", QUERIES)
def test_first_batch_without_rows(workspace: Workspace, name: str) -> None:
    sql, skipped, before, after = QUERIES[name]
    (workspace.root / "rows").mkdir()
    (workspace.root / "names.csv").write_text("k,name\n1,a\n2,b\n")
    workspace.run(PIPELINE % sql, until="caught_up")
    checkpoints = workspace.root / ".penstock/pipeline/checkpoints"
    (version,) = checkpoints.glob("*/updating/0.json")
    assert json.loads(version.read_text())["is_new"] == skipped
    assert table(workspace) == before
    workspace.put("rows/0.jsonl", [dump({"k": 2})])
    workspace.run(PIPELINE % sql, until="caught_up")
    assert table(workspace) == after
