"""Windows in each state store, and a change of the state store between runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import CommandLine
from penstock.engine.checkpoints.state_store import StateStore

pytestmark = pytest.mark.spark

PIPELINE = """\
name: counts
sources:
  clicks:
    type: files
    path: in/*.csv
    schema: id INT, at TIMESTAMP
    watermark: {column: at}
transforms:
  hourly:
    type: sql
    sql: SELECT hour(window.start) AS hour, count(*) AS n FROM clicks GROUP BY window(at, '1 hour')
sinks:
  out: {type: files, from: hourly, path: out, format: json}
runtime: {partitions: 1, state_store: STORE}
"""


def write(directory: Path, store: str, name: str, hours: list[int]) -> None:
    (directory / "in").mkdir(exist_ok=True)
    lines = ["id,at", *(f"{n},2024-05-01T{hour:02}:00:00Z" for n, hour in enumerate(hours))]
    (directory / "in" / name).write_text("\n".join(lines) + "\n")
    (directory / "p.yaml").write_text(PIPELINE.replace("STORE", store))


def counts(directory: Path) -> dict[int, int]:
    lines = [line for file in directory.glob("out/*.jsonl") for line in file.open()]
    rows = [json.loads(line) for line in lines]
    return {row["hour"]: row["n"] for row in rows}


@pytest.mark.parametrize(("first", "second"), [("rocksdb", "rocksdb"), ("memory", "rocksdb")])
def test_windows_outlive_a_run(tmp_path: Path, cli: CommandLine, first: str, second: str) -> None:
    write(tmp_path, first, "1.csv", [1, 1, 2])
    done = cli(tmp_path, "run", "p.yaml", "--until-caught-up")
    assert done.returncode == 0, done.stderr
    assert "hourly: 1 open window not yet written; watermark 2024-05-01 02:00" in done.stderr
    assert "state of hourly: 1 row, " in cli(tmp_path, "status", "p.yaml").stdout
    write(tmp_path, second, "2.csv", [2, 3])
    done = cli(tmp_path, "run", "p.yaml")
    assert done.returncode == 0, done.stderr
    assert counts(tmp_path) == {1: 2, 2: 2, 3: 1}
    assert not StateStore(tmp_path / ".penstock/counts/checkpoints/hourly").in_memory
