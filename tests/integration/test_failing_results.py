"""Groups on which SQL over the results of aggregate functions fails: dead letters."""

from __future__ import annotations

import json

import pytest
from pipelines import Row, Workspace, at, dump

from penstock.plan.model import Query
from penstock.runtime.batch_events import BatchEvents
from penstock.runtime.stop import Stopped

pytestmark = pytest.mark.spark

SOURCE = """\
runtime: {partitions: 2}
sources:
  s:
    type: files
    path: in/*.jsonl
    order: name
    max_files: 1
    schema: at TIMESTAMP, k LONG, text STRING, x LONG
"""
WATERMARK = "    watermark: {column: at, delay: 1 minute}\n"
COLUMNS = """\
1 + k AS next, CAST(max(text) AS INT) AS n, count(*) AS c, min(x) AS low, 12 / sum(x) AS r,
      if(count(*) > 1, raise_error('two of ' || k), 'one') AS d"""
FAILING: dict[tuple[int, int], Row] = {(0, 1): {"x": 0}, (1, 2): {"text": "x"}, (2, 3): {"x": 5}}
GROUPS = [
    ("cast-invalid-input", {"k": 2, "max(text)": "x", "c": 1, "low": 3, "sum(x)": "3"}),
    ("divide-by-zero", {"k": 1, "max(text)": "3", "c": 1, "low": 0, "sum(x)": "0"}),
    ("divide-by-zero", {"k": 3, "max(text)": "3", "c": 1, "low": 5, "sum(x)": "5"}),
    ("user-raised-exception", {"k": 0, "max(text)": "3", "c": 2, "low": 1, "sum(x)": "2"}),
]
"""The codes and the rows of the groups that fail in `COLUMNS` or in `HAVING`."""
HAVING = "HAVING 10 / (sum(x) - 5) < 100"


def row(minute: int, k: int) -> Row:
    failing = FAILING.get((minute, k), {})
    return {"at": at(60 * minute + k), "k": k, "text": "3", "x": 1 + k, **failing}


def pipeline(source: str, queries: dict[str, str]) -> str:
    """Returns a pipeline with a sink in memory for each query."""
    transforms = "".join(
        f"  {name}:\n    type: sql\n    sql: |\n      {sql}\n" for name, sql in queries.items()
    )
    sinks = "".join(f"  {name}_out: {{type: memory, from: {name}}}\n" for name in queries)
    return f"{source}transforms:\n{transforms}sinks:\n{sinks}"


def groups(workspace: Workspace, node: str) -> list[tuple[str, Row]]:
    """Returns the codes and the rows of the dead letters of a node, in order."""
    dead_letters = [letter for letter in workspace.dead_letters() if letter["node"] == node]
    assert {letter["stage"] for letter in dead_letters} == {"output"}
    found = [(letter["code"], json.loads(letter["payload"])) for letter in dead_letters]
    return sorted(found, key=lambda each: (each[0], each[1].get("k", 0)))


def test_windowed(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first failure adds checks to a stream with state, and batches are repeated after it."""
    rows = [row(minute, k) for minute in range(4) for k in range(4)]
    for number in range(4):
        workspace.put(f"in/{number}.jsonl", map(dump, [*rows[4 * number :][:4]]))
    workspace.put("in/3.jsonl", map(dump, [*rows[12:], row(3, 0)]))
    sql = f"SELECT window.start AS t, k, {COLUMNS} FROM s GROUP BY window(at, '1 minute'), k"
    nested = (
        "SELECT window.start AS t, sum(1 DIV (n - 1)) AS total, 1 DIV (sum(n) - 9) AS ratio "
        "FROM (SELECT window, k, max(x) AS n FROM s GROUP BY window(at, '1 minute'), k) "
        "GROUP BY window"
    )
    text = pipeline(SOURCE + WATERMARK, {"q": f"{sql} {HAVING}", "nested": nested})
    interrupted: set[tuple[str, int]] = set()
    ended = BatchEvents.on_end

    def interrupt(self: BatchEvents, query: Query, number: int) -> None:
        if number >= 3 and (query.name, number) not in interrupted:
            interrupted.add((query.name, number))
            raise Stopped
        ended(self, query, number)

    monkeypatch.setattr(BatchEvents, "on_end", interrupt)
    for _ in range(2):
        workspace.run(text, until="caught_up")
    assert interrupted == {(name, number) for name in ("q", "nested") for number in (3, 4)}
    monkeypatch.undo()
    workspace.run(text)
    found = groups(workspace, "q")
    windows = [payload.pop("window")["start"] for _, payload in found]
    assert [time[14:16] for time in windows] == ["01", "00", "02", "03"]
    assert found == GROUPS
    result = workspace.result("q_out").select("t", "k", "next", "n", "c", "low", "r", "d")
    bad = {(0, 1), (1, 2), (2, 3), (3, 0)}
    assert sorted(result.rows()) == [
        (at(60 * minute), k, 1 + k, 3, 1, 1 + k, 12 / (1 + k), "one")
        for minute in range(4)
        for k in range(4)
        if (minute, k) not in bad
    ]
    inner = [(minute, {"k": 0, "n": 1}) for minute in range(4)]
    outer = [(minute, {"total": "1", "sum(n)": "9"}) for minute in (1, 3)]
    failing = [payload for _, payload in groups(workspace, "nested")]
    minutes = [int(payload.pop("window")["start"][14:16]) for payload in failing]
    by_minute = sorted(zip(minutes, failing, strict=True), key=str)
    assert by_minute == sorted([*inner, *outer], key=str)
    nested_result = workspace.result("nested_out").select("t", "total", "ratio").rows()
    assert sorted(nested_result) == [(at(0), -1, 0), (at(120), 1, 1)]


def test_whole_input(workspace: Workspace) -> None:
    rows = [row(0, 0), row(0, 0), row(0, 1), row(1, 2), row(2, 3), row(3, 4)]
    workspace.put_rows("in", rows)
    nested = (
        "SELECT c, 1 DIV (count(*) - 1) AS ratio FROM "
        "(SELECT k, count(*) AS c, 1 / (min(x) - 5) AS q FROM s GROUP BY k) WHERE q < 9 GROUP BY c"
    )
    sql = f"SELECT k, {COLUMNS} FROM s GROUP BY k {HAVING}".replace("x) - 5", "x) - 9")
    workspace.run(pipeline(SOURCE, {"q": sql, "nested": nested}))
    assert groups(workspace, "q") == [each for each in GROUPS if each[1]["k"] != 3]
    assert sorted(workspace.result("q_out").select("k", "n", "c", "low").rows()) == [
        (3, 3, 1, 5), (4, 3, 1, 5)
    ]  # fmt: skip
    assert [payload for _, payload in groups(workspace, "nested")] == [
        {"c": 2, "count(1)": 1}, {"k": 3, "c": 1, "min(x)": 5}, {"k": 4, "c": 1, "min(x)": 5}
    ]  # fmt: skip
    assert workspace.result("nested_out").select("c", "ratio").rows() == [(1, 1)]
