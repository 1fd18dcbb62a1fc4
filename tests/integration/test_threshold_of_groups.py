"""Thresholds of groups across batches and runs, from lines of Graphite."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PIPELINE = """
name: load
sources:
  metrics:
    type: files
    path: in/*.graphite
    order: name
    max_files: 1
    format: {type: graphite, templates: [host.measurement]}
    schema: time TIMESTAMP, measurement STRING, host STRING, value DOUBLE
transforms:
  levels:
    type: threshold
    from: metrics
    by: [host]
    column: value
    time: time
    as: level
    default: 10
    increase: {factor: 2, duration: 5s}
    decrease: {trigger: 0.3, factor: 0.5, duration: 5s}
    min: 2
    max: 70
sinks:
  out: {type: files, from: levels, path: out, format: json}
"""
VALUES = {
    "a": [(0, 15, 10), (5, 15, 10), (6, 15, 20), (7, 25, 20), (13, 25, 40), (20, 90, 40),
          (26, 90, 70)],
    "b": [(0, 1, 10), (3, 1, 10), (6, 1, 5), (7, 1, 5), (13, 1, 2.5)],
}  # fmt: skip


def test_batches_and_runs_change_nothing(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "load.yaml").write_text(PIPELINE)
    (tmp_path / "in").mkdir()
    lines = sorted(
        ((time, host, value) for host, rows in VALUES.items() for time, value, _ in rows),
        key=lambda row: row[0],
    )
    for number, (time, host, value) in enumerate(lines):
        path = tmp_path / "in" / f"{number // 3:02}.graphite"
        with path.open("a") as file:
            file.write(f"{host}.load {value} {time}\n")
    last = max((tmp_path / "in").iterdir())
    later = last.rename(tmp_path / last.name)
    bad = tmp_path / "in" / "00.graphite"
    bad.write_text(f"a.load x 3\n{bad.read_text()}")
    result = cli(tmp_path, "run", "load.yaml")
    assert result.returncode == 0, result.stderr
    later.rename(last)
    result = cli(tmp_path, "run", "load.yaml")
    assert result.returncode == 0, result.stderr
    rows = [
        json.loads(line)
        for path in (tmp_path / "out").glob("*.json*")
        for line in path.read_text().splitlines()
    ]
    for host, expected in VALUES.items():
        found = sorted(
            (row["time"], row["value"], row["level"]) for row in rows if row["host"] == host
        )
        assert [(value, level) for _, value, level in found] == [e[1:] for e in expected]
    assert "not-a-number" in cli(tmp_path, "dead", "list", "load.yaml").stdout
