"""The summary of a run names the rows that are not yet final or not completely written."""

from __future__ import annotations

from pathlib import Path

from penstock import app
from penstock.cli.summary import describe_unwritten
from penstock.core.errors import Transient
from penstock.observe.execution import Execution
from penstock.observe.metrics import Metrics
from penstock.runtime.outcome import Outcome

PIPELINE = """\
name: shop
sources:
  orders: {type: memory, rows: [], schema: "id LONG, at TIMESTAMP",
           watermark: {column: at, delay: 1 minute}}
transforms:
  hourly: {type: sql, sql: "SELECT window.start AS hour, count(*) AS n FROM orders
           GROUP BY window(at, '1 hour')"}
  all: {type: sql, sql: "SELECT count(*) AS n FROM orders"}
sinks:
  copy: {type: memory, from: orders}
  counts: {type: memory, from: hourly}
  total: {type: memory, from: all}
"""
NUMBERS = {
    "queries": {"orders": {"open_windows": 0}, "hourly": {"open_windows": 1200}},
    "watermarks": {"hourly": "2026-03-01T10:30:00.000Z", "orders": "2026-03-01T10:40:00.000Z"},
}
FINAL = "all: its final rows are written at the end of the input; run without --until-caught-up"


def test_rows_that_are_not_final_are_named(tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text(PIPELINE)
    plan = app.plan(path)
    caught_up = Outcome("caught_up")
    assert describe_unwritten(plan, caught_up, NUMBERS) == [
        "hourly: 1,200 open windows not yet written; watermark 2026-03-01 10:30",
        FINAL,
    ]
    unstarted = {"queries": {"hourly": {"open_windows": 1}}, "watermarks": {}}
    assert describe_unwritten(plan, caught_up, unstarted) == [
        "hourly: 1 open window not yet written; no watermark yet",
        FINAL,
    ]
    assert describe_unwritten(plan, Outcome("complete"), NUMBERS) == []


def test_the_batch_of_a_sink_that_failed_before_a_stop_is_named(tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text(PIPELINE)
    metrics = Metrics()
    metrics.queries |= {"orders": Execution(), "hourly": Execution()}
    for execution in metrics.queries.values():
        execution.begin_batch(3)
    metrics.queries["orders"].try_again(Transient("could not reach the server"), "copy")
    for execution in metrics.queries.values():
        execution.end()
    assert describe_unwritten(app.plan(path), Outcome("stopped"), metrics.snapshot()) == [
        "orders: a batch is not completely written, the next run repeats it; "
        "sink copy: could not reach the server"
    ]
