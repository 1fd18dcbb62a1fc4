"""The lines of the log of a run on a console."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock import app
from penstock.cli import log_view
from penstock.cli.log_view import LogView
from penstock.core.log import Silent
from penstock.observe.metrics import Metrics

PIPELINE = """\
name: shop
sources:
  orders: {type: memory, schema: "id INT", rows: []}
sinks:
  out: {type: blackhole, from: orders}
"""


class Recorded(Silent):
    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def info(self, event: str, **facts: Any) -> None:
        self.lines.append({"event": event, **{k: v for k, v in facts.items() if v is not None}})


def test_progress_has_fields_and_only_lines_with_news(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_view, "PERIOD", 0.0)
    file = tmp_path / "shop.yaml"
    file.write_text(PIPELINE)
    view, log, metrics = LogView(app.plan(file), [file], "console", "info"), Recorded(), Metrics()
    view.log = log
    orders = metrics.flow("orders", "source", "memory")
    metrics.flow("out", "sink", "blackhole")
    view.begin(view.plan, metrics)
    orders.add(3)
    orders.measure("orders", 17_997, "records")
    view.tick()
    view.tick()
    orders.dead_letters, orders.untimed = 2, 4
    view.tick()
    first, second = (line for line in log.lines if line["event"] == "progress")
    assert first.keys() == {
        "event", "seconds", "batches", "orders.rows", "orders.rows_per_second",
        "orders.lag_records", "out.rows", "out.rows_per_second",
    }  # fmt: skip
    assert (first["orders.rows"], first["orders.lag_records"], first["out.rows"]) == (3, 17_997, 0)
    assert (second["dead_letters"], second["orders.dead_letters"]) == (2, 2)
    assert second["rows_without_event_time"] == 4
