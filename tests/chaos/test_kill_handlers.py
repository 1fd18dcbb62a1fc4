"""A graph of stream-data-processor that is killed: its state and its rows are those of one run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deaths import run_until_killed
from moments import Change
from pyspark.sql import SparkSession

from penstock import app
from penstock.runtime.dead_letters.store import DeadLetters
from penstock.spec.yaml.writer import convert

pytestmark = [pytest.mark.chaos, pytest.mark.spark]

GRAPH = """
name: cpu
producers:
  metrics:
    type: file
    path: in/*.graphite
    parser:
      type: graphite
      template_strings: [host.measurement.cpu.field]
      fields: {idle: double, user: int64}
nodes:
  core:
    from: metrics
    handlers:
      - {type: group, columns: [host]}
      - {type: window, period: 20, every: 10}
      - {type: group, columns: [cpu]}
      - type: aggregate
        aggregate_columns: {idle: {last: idle.last, mean: idle.mean}, user: {max: user.max}}
      - {type: dispatch, handler: {type: threshold, watch_column: idle.mean,
         threshold_column: level, default_threshold: 20, increase_scale_factor: 1.5,
         increase_after: 9}}
consumers:
  file: {type: file, from: core, path: out}
"""


def write_lines(directory: Path) -> None:
    """Writes files with lines of two hosts, some of which are late or wrong."""
    (directory / "in").mkdir()
    lines = [
        f"{host}.cpu.{cpu}.{field} {(second * 7 + cpu) % 60} {1_600_000_000 + second}"
        for second in range(120)
        for host in ("a", "b")
        for cpu in (0, 1)
        for field in ("idle", "user")
    ]
    for at in (150, 600):
        lines.insert(at, "a.cpu.0.idle 99 1600000001")
        lines.insert(at, "a.cpu.0.idle many 1600000060")
    for number in range(6):
        part = lines[number * 161 : (number + 1) * 161]
        (directory / "in" / f"{number}.graphite").write_text("\n".join(part) + "\n")


def rows(directory: Path) -> list[str]:
    files = (directory / "out").glob("*.json*")
    return sorted(line for file in files for line in file.read_text().splitlines())


def letters(directory: Path) -> list[tuple[str, str]]:
    stored = DeadLetters(directory / ".penstock" / "cpu" / "dead_letters").read().to_pylist()
    return sorted((letter["node"], letter["code"]) for letter in stored)


def test_a_killed_graph_equals_its_converted_pipeline(
    tmp_path: Path, penstock_spark: SparkSession
) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for directory in (whole, killed):
        directory.mkdir()
        write_lines(directory)
        (directory / "cpu.yaml").write_text(GRAPH)
    converted = convert([str(whole / "cpu.yaml")])
    assert "producers" not in converted
    (whole / "cpu.yaml").write_text(converted)
    app.run(whole / "cpu.yaml", spark=penstock_spark.newSession())
    for moment in (
        Change("*/out/.penstock/*/ledger.json", "before", 2),
        Change("*/out/.penstock/*/ledger.json", "after", 2),
    ):
        assert run_until_killed(killed / "cpu.yaml", moment, penstock_spark)
    app.run(killed / "cpu.yaml", spark=penstock_spark.newSession())
    found = rows(killed)
    assert found == rows(whole)
    assert len(found) == 2 * 2 * 11 and json.loads(found[0])["level"] >= 20
    assert letters(killed) == letters(whole)
    assert {code for _, code in letters(whole)} == {"late", "not-a-number"}
