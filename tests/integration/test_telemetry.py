"""A run with telemetry: spans of real batches, their log events, and the log of batches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import CommandLine
from otlp_receiver import attributes, otlp_receiver
from penstock.runtime.state.batch_log import read_batches
from penstock.runtime.state.directory import StateDirectory

pytestmark = pytest.mark.spark

PIPELINE = """
name: shop
sources:
  orders:
    type: files
    path: "in/*.csv"
    schema: id INT, at TIMESTAMP
    max_files: 1
    watermark: {column: at}
transforms:
  minutes:
    type: sql
    sql: SELECT window.start AS minute, count(*) AS n FROM orders GROUP BY window(at, '1 minute')
sinks:
  archive: {type: files, from: orders, path: out/archive, format: json}
  counts: {type: files, from: minutes, path: out/counts, format: json}
"""


def test_batches_are_exported_and_listed(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "shop.yaml").write_text(PIPELINE)
    for number in (1, 2):
        rows = f"{number},2026-05-01T10:0{number}:00Z\nx,2026-05-01T10:0{number}:00Z\n"
        (tmp_path / "in" / f"{number}.csv").write_text("id,at\n" + rows)
    with otlp_receiver() as receiver:
        done = cli(tmp_path, "run", "shop.yaml", "--otlp-endpoint", receiver.url)
        assert done.returncode == 0, done.stderr
        spans, metrics, logs = receiver.spans(), receiver.metrics(), receiver.logs()

    state = StateDirectory(tmp_path / ".penstock" / "shop")
    found = read_batches(state, limit=100)
    archived = [batch for batch in found if "archive" in batch["sinks"]]
    assert [batch["number"] for batch in archived] == [1, 0]
    assert [batch["sinks"]["archive"]["rows"] for batch in archived] == [1, 1]
    for batch in found:
        assert batch["phases"]["processing"] > 0
        assert sum(batch["phases"].values()) == pytest.approx(batch["seconds"], abs=0.05)
    assert any(batch["watermark"] and batch["state_rows"] for batch in found)

    roots = [span for span in spans if not span.parent_span_id]
    assert len(roots) == len(found) == len({span.trace_id for span in roots})
    assert {attributes(span)["penstock.pipeline"] for span in roots} == {"shop"}
    for span in spans:
        assert span.start_time_unix_nano <= span.end_time_unix_nano
    assert {"write archive", "write counts"} <= {span.name for span in spans}

    assert metrics["penstock_dead_letters"].sum.data_points[0].as_double == 2
    assert {"penstock_batches", "penstock_batch_duration_seconds"} <= metrics.keys()
    assert "dead letters" in {record.body.string_value for record in logs}
    status = json.loads((state.root / "status.json").read_text())
    numbers = [query["batches"] for query in status["queries"].values() if "batches" in query]
    assert sum(numbers) == len(found)


def test_an_invalid_endpoint_is_an_error_before_the_run(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(PIPELINE)
    done = cli(tmp_path, "run", "shop.yaml", "--otlp-endpoint", "localhost:4318")
    assert (done.returncode, "invalid-address" in done.stderr) == (2, True), done.stderr
