"""Watermarks of expressions: their maximum decides which rows are late."""

from __future__ import annotations

from collections import Counter

import pytest
from pipelines import Workspace, at, dump

pytestmark = pytest.mark.spark

SOURCE = """\
  t{number}:
    type: files
    path: rows/*.jsonl
    order: name
    max_files: 1
    schema: ts TIMESTAMP, n INT
    watermark: {{column: ts, bound: "{bound}"}}
    late: dead_letter
"""
TRANSFORM = """\
  result{number}:
    type: sql
    sql: SELECT window.start AS a, count(*) AS n FROM t{number} GROUP BY window(ts, '1 minute')
"""
BOUNDS = {
    "ts - INTERVAL 5 SECONDS * n": 1,
    "CASE WHEN n > 2 THEN ts END": 0,
    "ts - INTERVAL 1 SECOND * (10 DIV (n - 2))": 0,
}
"""Bounds, and the number of late rows."""


def test_rows_before_the_maximum_are_late(workspace: Workspace) -> None:
    batches = [[(10, 1), (200, 2)], [(230, 1)], [(20, 1)], [(270, 1)]]
    for number, rows in enumerate(batches):
        lines = [dump({"ts": at(second), "n": n}) for second, n in rows]
        workspace.put(f"rows/{number}.jsonl", lines)
    sources = "".join(SOURCE.format(number=n, bound=bound) for n, bound in enumerate(BOUNDS))
    transforms = "".join(TRANSFORM.format(number=n) for n in range(len(BOUNDS)))
    sinks = "".join(f"  out{n}: {{type: memory, from: result{n}}}\n" for n in range(len(BOUNDS)))
    workspace.run(f"sources:\n{sources}transforms:\n{transforms}sinks:\n{sinks}")
    nodes = Counter(letter["node"] for letter in workspace.dead_letters())
    for number, (bound, late) in enumerate(BOUNDS.items()):
        assert nodes[f"t{number}"] == late, bound
        assert workspace.result(f"out{number}")["n"].sum() == 5 - late, bound
        assert workspace.result(f"out{number}")["a"].max() == at(240), bound
