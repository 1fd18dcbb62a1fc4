"""Rows of a source count once, however often Spark computes a batch."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spark

PIPELINE = """\
name: counted
runtime: {partitions: 3}
sources:
  numbers: {type: generate, rows: 400, max_records: 200, partitions: 2, fields: {id: sequence}}
transforms:
"""
TWO_READERS = """\
  upper: {type: filter, from: numbers, where: id >= 100}
  both:
    type: sql
    scope: batch
    sql: SELECT a.id FROM numbers a JOIN upper USING (id) ORDER BY a.id
sinks:
  out: {type: print, from: both}
  more: {type: blackhole, from: upper}
"""


def one_reader(sql: str) -> str:
    return (
        f"  step: {{type: sql, scope: batch, sql: '{sql}'}}\n"
        "sinks:\n  out: {type: print, from: step}\n"
    )


@pytest.mark.parametrize(
    ("nodes", "written"),
    [
        (one_reader("SELECT id FROM numbers ORDER BY id DESC"), 400),
        (one_reader("SELECT a.id FROM numbers a JOIN numbers b USING (id)"), 400),
        (one_reader("SELECT count(*) AS n FROM numbers"), 2),
        (one_reader("SELECT id, 1 / (id % 100) AS q FROM numbers ORDER BY id"), 396),
        (one_reader("SELECT id FROM numbers WHERE id < 10"), 10),
        (TWO_READERS, 300),
    ],
    ids=["sorted", "joined", "grouped", "failing", "skipped", "shared"],
)
def test_rows_of_a_source_count_once(tmp_path: Path, cli: Any, nodes: str, written: int) -> None:
    (tmp_path / "counted.yaml").write_text(PIPELINE + nodes)
    done = cli(tmp_path, "run", "counted.yaml")
    assert done.returncode == 0
    counts = dict(re.findall(r"(\w+)\.rows=([\d,]+)", done.stderr.splitlines()[-1]))
    assert (counts["numbers"], counts["out"]) == ("400", str(written))
