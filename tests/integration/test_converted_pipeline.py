"""A pipeline and the script that `penstock convert` prints write the same files."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

PIPELINE = """\
runtime: {state: state}
functions:
  initial: {args: {name: STRING}, returns: STRING, code: "return name[0].upper()"}
sources:
  orders:
    type: files
    path: in/*.csv
    schema: customer STRING, price INT, at TIMESTAMP
    watermark: {column: at, delay: 1 minute}
  countries:
    type: files
    path: countries.csv
    schema: customer STRING, country STRING
    static: true
transforms:
  named:
    type: sql
    sql: SELECT *, initial(customer) AS letter FROM orders JOIN countries USING (customer)
  minutes:
    type: sql
    sql: |
      SELECT window.start AS minute, country, letter, sum(price) AS total
      FROM named GROUP BY window(at, '1 minute'), country, letter
sinks:
  out: {type: files, path: out, format: json, from: minutes}
"""
ORDERS = """\
customer,price,at
ann,3,2026-01-01T12:00:10Z
bob,4,2026-01-01T12:00:20Z
ann,5,2026-01-01T12:00:30Z
bob,6,2026-01-01T12:07:00Z
"""


def test_both_write_the_same_files(
    tmp_path: Path, cli: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    rows = {}
    for name in ("p.yaml", "p.sql"):
        directory = tmp_path / name.replace(".", "_")
        (directory / "in").mkdir(parents=True)
        (directory / "in" / "orders.csv").write_text(ORDERS)
        (directory / "countries.csv").write_text("customer,country\nann,DE\nbob,FR\n")
        (directory / "p.yaml").write_text(PIPELINE)
        if name == "p.sql":
            (directory / name).write_text(cli(directory, "convert", "p.yaml").stdout)
        done = cli(directory, "run", name, "--quiet")
        assert done.returncode == 0, done.stderr
        rows[name] = sorted(
            line
            for file in (directory / "out").rglob("part-*")
            for line in file.read_text().splitlines()
        )
    assert len(rows["p.yaml"]) == 3 and rows["p.sql"] == rows["p.yaml"]
