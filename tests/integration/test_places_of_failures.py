"""The place in the file of a failure of a source, a lookup table or a sink during a run."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from command_line import CommandLine

pytestmark = pytest.mark.spark

SOURCE = """\
sources:
  orders: {type: sqlite, path: shop.db, table: orders, cursor_columns: [idd]}
sinks:
  out: {type: blackhole, from: orders}
"""
LOOKUP = """\
sources:
  scans: {type: memory, rows: [{id: 1}]}
  orders: {type: sqlite, path: shop.db, table: orders, lookup: true, schema: "id LONG, nam STRING"}
transforms:
  named: {type: lookup, from: scans, table: orders, on: [id], columns: [nam]}
sinks:
  out: {type: blackhole, from: named}
"""
SINK = """\
sources:
  scans: {type: memory, rows: [{id: 1, name: a}]}
sinks:
  out: {type: sqlite, from: scans, path: shop.db, table: orders}
"""


@pytest.mark.parametrize(
    ("text", "message", "excerpt"),
    [
        (SOURCE, 'orders has no column "idd"', "cursor_columns: [idd]"),
        (LOOKUP, "no such column: nam", "orders: {type: sqlite"),
        (SINK, "malformed JSON", "out: {type: sqlite"),
    ],
    ids=["source", "lookup", "sink"],
)
def test_the_line_of_the_node(
    tmp_path: Path, cli: CommandLine, text: str, message: str, excerpt: str
) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db", isolation_level=None)) as db:
        db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, name TEXT)")
        db.execute(
            "CREATE TRIGGER full BEFORE INSERT ON orders WHEN NEW.id = 1 "
            "BEGIN SELECT json_extract(NEW.name, 'x'); END"
        )
    (tmp_path / "shop.yaml").write_text(f"name: shop\n{text}")
    run = cli(tmp_path, "run", "shop.yaml")
    assert run.returncode in (2, 3) and message in run.stderr
    line = 1 + next(
        n for n, each in enumerate(["name: shop", *text.splitlines()]) if excerpt in each
    )
    assert f"--> shop.yaml:{line}:" in run.stderr and excerpt in run.stderr
