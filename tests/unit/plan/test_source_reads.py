"""The number of times that a node reads each source, by all paths."""

from __future__ import annotations

from pathlib import Path

from penstock import app
from penstock.plan.repeated_reads import count_source_reads

PIPELINE = """
sources:
  a: {type: memory, rows: [], schema: id INT}
  table: {type: memory, rows: [], schema: id INT, static: true}
transforms:
  kept: {type: filter, from: a, where: id > 0}
  twice: {type: sql, sql: SELECT x.id FROM kept x JOIN kept y USING (id)}
  more: {type: sql, sql: SELECT t.id FROM twice t JOIN a USING (id) JOIN table USING (id)}
  again: {type: sql, sql: SELECT x.id FROM twice x JOIN twice y USING (id)}
sinks:
  one: {type: blackhole, from: more}
  two: {type: blackhole, from: again}
"""


def test_reads_by_all_paths(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE)
    nodes = app.plan(tmp_path / "p.yaml").nodes
    counts = count_source_reads(nodes, {"a"})
    reads = {name: counts[name]["a"] for name in ("kept", "twice", "more", "again", "one", "two")}
    assert reads == {"kept": 1, "twice": 2, "more": 3, "again": 4, "one": 3, "two": 4}
    assert not any(count["table"] for count in counts.values())
