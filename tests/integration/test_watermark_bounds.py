"""Watermarks of expressions: their maximum decides which rows are late."""

from __future__ import annotations

import pytest
from pipelines import Workspace, at, dump

pytestmark = pytest.mark.spark

PIPELINE = """\
sources:
  t:
    type: files
    path: rows/*.jsonl
    order: name
    max_files: 1
    schema: ts TIMESTAMP, n INT
    watermark: {{column: ts, bound: "{bound}"}}
    late: dead_letter
transforms:
  result:
    type: sql
    sql: SELECT window.start AS a, count(*) AS n FROM t GROUP BY window(ts, '1 minute')
sinks:
  out: {{type: memory, from: result}}
"""


@pytest.mark.parametrize(
    ("bound", "late"),
    [
        ("ts - INTERVAL 5 SECONDS * n", 1),
        ("CASE WHEN n > 2 THEN ts END", 0),
        ("ts - INTERVAL 1 SECOND * (10 DIV (n - 2))", 0),
    ],
)
def test_rows_before_the_maximum_are_late(workspace: Workspace, bound: str, late: int) -> None:
    rows = [(10, 1), (200, 2), (230, 1), (20, 1), (270, 1)]
    for number, (second, n) in enumerate(rows):
        workspace.put(f"rows/{number}.jsonl", [dump({"ts": at(second), "n": n})])
    workspace.run(PIPELINE.format(bound=bound))
    assert len(workspace.dead_letters()) == late
    assert workspace.result()["n"].sum() == len(rows) - late
    assert workspace.result()["a"].max() == at(240)
