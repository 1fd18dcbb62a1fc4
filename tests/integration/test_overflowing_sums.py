"""Sums of BIGINT that overflow: dead letters of their groups, whatever the order of the rows."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from pipelines import Row, Workspace, at, dump
from test_failing_results import pipeline
from test_updating_failures import pipeline as updating_pipeline
from test_updating_failures import tables

from penstock.engine import start

pytestmark = pytest.mark.spark

LONG = 2**63
VALUES: dict[str, list[int | None]] = {
    "above": [LONG - 1, LONG - 1, 5],
    "below": [-LONG, 1, -2],
    "order": [LONG - 1, 1, -9],
    "minus": [-LONG, -1, 9],
    "most": [LONG - 2, None, 1],
    "least": [1 - LONG, -1, None],
    "small": [-1, 2, 2**31],
    "null": [None, None, None],
}
"""The values of each group, one for each batch."""
SOURCE = """\
runtime: {partitions: 2}
sources:
  s:
    type: files
    path: in/*.jsonl
    order: name
    max_files: 1
    schema: at TIMESTAMP, k STRING, x LONG
"""
WATERMARK = "    watermark: {column: at, delay: 1 minute}\n"
COLUMNS = "SELECT k, sum(x) AS total, count(x) AS n, avg(x) > 0 AS p FROM s"
DISTINCT = "SELECT k, sum(DISTINCT x) AS total, count(DISTINCT x) AS n FROM s"
Totals = list[tuple[str, int | None]]


def put_batch(workspace: Workspace, number: int, values: dict[str, int | None]) -> None:
    rows: list[Row] = [{"at": at(number), "k": k, "x": x} for k, x in values.items()]
    workspace.put(f"in/{number}.jsonl", map(dump, rows))


def batch(number: int) -> dict[str, int | None]:
    return {name: values[number] for name, values in VALUES.items()}


def totals(last: int, leave_out: Iterable[str] = (), *, distinct: bool = False) -> Totals:
    """Returns the totals of the groups after a batch, without some of them."""
    found: Totals = []
    for name, values in VALUES.items():
        known = [x for x in values[: last + 1] if x is not None]
        if name not in leave_out:
            found.append((name, sum(set(known) if distinct else known) if known else None))
    return sorted(found)


def failing(workspace: Workspace) -> dict[str, Totals]:
    """Returns the groups and the totals of the dead letters of each node."""
    found: dict[str, Totals] = {}
    for letter in workspace.dead_letters():
        assert (letter["stage"], letter["code"]) == ("output", "arithmetic-overflow")
        row = json.loads(letter["payload"])
        assert letter["message"] == f"the sum {row['total']} overflows BIGINT"
        found.setdefault(letter["node"], []).append((row["k"], int(row["total"])))
    return {node: sorted(each) for node, each in found.items()}


def only(names: Iterable[str], last: int, *, distinct: bool = False) -> Totals:
    return [each for each in totals(last, distinct=distinct) if each[0] in names]


def result(workspace: Workspace, name: str) -> Totals:
    return sorted(workspace.result(f"{name}_out").select("k", "total").rows())


ENDS = ["above", "below"]
"""The groups whose totals overflow after the last batch."""


def test_streams(workspace: Workspace) -> None:
    """The groups are results of the start that closes their windows."""
    over = "GROUP BY window(at, '1 minute'), k"
    queries = {
        "sums": f"{COLUMNS} {over}",
        "filtered": f"SELECT k, sum(x) FILTER (WHERE x != 5) AS total FROM s {over} "
        "HAVING sum(x) != 2",
        "distinct": f"{DISTINCT} {over}",
        "sliding": "SELECT k, sum(x) AS total FROM s GROUP BY window(at, '4 minutes', "
        "'1 minute'), k",
    }
    for number in range(3):
        put_batch(workspace, number, batch(number))
    workspace.run(pipeline(SOURCE + WATERMARK, queries))
    found = failing(workspace)
    assert found["sums"] == only(ENDS, 2)
    assert found["filtered"] == sorted([("above", 2 * LONG - 2), *only(["below"], 2)])
    assert found["distinct"] == only(ENDS, 2, distinct=True)
    assert found["sliding"] == sorted(only(ENDS, 2) * 4)
    assert result(workspace, "sums") == totals(2, ENDS)
    assert result(workspace, "filtered") == totals(2, [*ENDS, "null"])
    assert result(workspace, "distinct") == totals(2, ENDS, distinct=True)
    assert result(workspace, "sliding") == sorted(totals(2, ENDS) * 4, key=str)


def test_whole_input(workspace: Workspace) -> None:
    for number in range(3):
        put_batch(workspace, number, batch(number))
    queries = {
        "sums": "SELECT k, sum(x) AS total, count(DISTINCT x) AS n FROM s GROUP BY k",
        "distinct": f"{DISTINCT} GROUP BY k",
    }
    workspace.run(pipeline(SOURCE, queries))
    assert failing(workspace) == {
        "sums": only(ENDS, 2), "distinct": only(ENDS, 2, distinct=True)
    }  # fmt: skip
    assert result(workspace, "sums") == totals(2, ENDS)
    assert result(workspace, "distinct") == totals(2, ENDS, distinct=True)


def test_updating(workspace: Workspace) -> None:
    """The state keeps exact sums, so that a group is added again when its total fits."""
    queries = {"sums": f"{COLUMNS} GROUP BY k", "distinct": f"{DISTINCT} GROUP BY k"}
    text = updating_pipeline(queries, SOURCE + "    watch: true\n")
    for number in range(3):
        put_batch(workspace, number, batch(number))
        if number > 0:
            workspace.run(text, until="caught_up")
    found = {
        name: [[row[:2] for row in rows] for rows in tables(workspace, name, 3)] for name in queries
    }
    between = ["minus", "order"]
    assert found["sums"] == [
        totals(0), totals(1, ["above", *between]), totals(2, ENDS)
    ]  # fmt: skip
    assert found["distinct"] == [
        totals(0, distinct=True),
        totals(1, between, distinct=True),
        totals(2, ENDS, distinct=True),
    ]
    assert failing(workspace) == {
        "sums": sorted([*only(["above", *between], 1), *only(ENDS, 2)]),
        "distinct": sorted([*only(between, 1), *only(ENDS, 2, distinct=True)]),
    }


def test_a_state_with_sums_of_spark_remains_valid(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = pipeline(SOURCE, {"sums": f"{COLUMNS} GROUP BY k"})
    monkeypatch.setattr(start, "has_exact_sums", lambda checkpoint: False)
    put_batch(workspace, 0, {"a": LONG - 9})
    workspace.run(text, until="caught_up")
    monkeypatch.undo()
    checkpoint = workspace.root / ".penstock" / "pipeline" / "checkpoints" / "sums"
    (checkpoint / "penstock-exact-sums").unlink()
    put_batch(workspace, 1, {"a": 8, "b": 1})
    workspace.run(text, until="caught_up")
    assert result(workspace, "sums") == [("a", LONG - 1), ("b", 1)]
    put_batch(workspace, 2, {"a": 1})
    outcome = workspace.start(text, until="caught_up").wait(120)
    assert outcome is not None
    (error,) = outcome.errors.values()
    assert error.code == "arithmetic-overflow"
    assert error.hint is not None and "--fresh" in error.hint
