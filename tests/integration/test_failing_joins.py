"""Joined rows of two streams on which the same SQL fails: dead letters, and the query goes on."""

from __future__ import annotations

import json

import pytest
from pipelines import Row, Workspace, at, dump
from test_failing_results import pipeline

pytestmark = pytest.mark.spark

SOURCES = """\
runtime: {partitions: 2}
sources:
  a:
    type: files
    path: a/*.jsonl
    order: name
    schema: at TIMESTAMP, id LONG, k LONG, text STRING, unused STRING
    watermark: {column: at, delay: 1 minute}
  b:
    type: files
    path: b/*.jsonl
    order: name
    schema: at TIMESTAMP, k LONG, y LONG, kind STRING
    watermark: {column: at, delay: 1 minute}
"""
ON = "a.k = b.k AND a.at BETWEEN b.at AND b.at + INTERVAL 30 SECONDS"
QUERIES = {
    "inner": f"SELECT a.id, CAST(a.text AS INT) AS n, 12 DIV b.y AS q FROM a JOIN b ON {ON} "
    "WHERE b.kind = 'x' AND a.id > 0",
    "outer": f"SELECT a.id, 12 DIV coalesce(b.y, a.id - 5) AS q FROM a LEFT JOIN b ON {ON}",
    "groups": "SELECT window.start AS t, sum(b.y) AS total, 12 DIV (count(*) - 3) AS r "
    f"FROM a JOIN b ON {ON} GROUP BY window(a.at, '1 minute')",
    "chained": "SELECT 12 DIV q AS r, id FROM wide",
    "wide": f"SELECT a.at, a.id, 12 DIV b.y AS q, CAST(a.text AS INT) AS n FROM a JOIN b ON {ON}",
}
BY_ZERO, NO_NUMBER = "divide-by-zero", "cast-invalid-input"


def put(workspace: Workspace, number: int, rows: list[tuple[int, str, int]]) -> None:
    """Writes rows of both sources with one key each: the ID and text of `a`, and `y` of `b`."""
    left: list[Row] = [
        {"at": at(60 * number + k), "id": id_, "k": k, "text": text, "unused": "u"}
        for k, (id_, text, _) in enumerate(rows)
    ]
    right: list[Row] = [
        {"at": at(60 * number), "k": k, "y": y, "kind": "x"} for k, (_, _, y) in enumerate(rows)
    ]
    workspace.put(f"a/{number}.jsonl", map(dump, left))
    workspace.put(f"b/{number}.jsonl", map(dump, right))


def test_joined_rows(workspace: Workspace) -> None:
    text = pipeline(SOURCES, QUERIES)
    put(workspace, 0, [(1, "1", 12), (2, "2", 3)])
    workspace.run(text, until="caught_up")
    put(workspace, 1, [(3, "3", 0), (4, "x", 4), (6, "6", 9)])
    workspace.run(text, until="caught_up")
    put(workspace, 2, [(7, "7", 6), (8, "8", 0)])
    workspace.put("a/3.jsonl", [dump({"at": at(150), "id": 5, "k": 9, "text": "5"})])
    workspace.run(text)
    found: dict[str, list[tuple[str, int]]] = {}
    for letter in workspace.dead_letters():
        row = json.loads(letter["payload"])
        assert letter["stage"] == "output"
        assert "unused" not in row
        found.setdefault(letter["node"], []).append((letter["code"], row.get("id", row.get("y"))))
    bad = [(NO_NUMBER, 4), (BY_ZERO, 3), (BY_ZERO, 8)]
    assert {node: sorted(each, key=str) for node, each in found.items()} == {
        "inner": bad,
        "wide": bad,
        "outer": [(BY_ZERO, 3), (BY_ZERO, 5), (BY_ZERO, 8)],
        "groups": [(BY_ZERO, None)],
    }
    assert sorted(workspace.result("inner_out").rows()) == [
        (1, 1, 1), (2, 2, 4), (6, 6, 1), (7, 7, 2)
    ]  # fmt: skip
    assert sorted(workspace.result("outer_out").rows()) == [(1, 1), (2, 4), (4, 3), (6, 1), (7, 2)]
    assert sorted(workspace.result("groups_out").rows()) == [(at(0), 15, -12), (at(120), 6, -12)]
    assert sorted(workspace.result("chained_out").rows()) == [(3, 2), (6, 7), (12, 1), (12, 6)]
