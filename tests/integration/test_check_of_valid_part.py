"""`penstock check` analyses the SQL that does not depend on an error in the files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spark

PIPELINE = """
sources:
  orders: {type: memory, rows: [], max_row: 3, schema: "id LONG, price DOUBLE"}
  broken: {type: memory, rows: [], schema: id LONGG}
transforms:
  unknown_node: {type: sql, sql: SELECT * FROM oders}
  unknown_column: {type: sql, sql: SELECT prise FROM orders}
  after_error: {type: sql, sql: SELECT ib FROM broken}
sinks:
  out: {type: blackhole, from: unknown_node}
  rest: {type: blackhole, from: unknown_column}
"""


def test_check_reports_errors_of_files_and_of_sql(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(PIPELINE)
    run = cli(tmp_path, "check", "shop.yaml", "--json")
    report = json.loads(run.stdout)
    found = [(error["code"], error["line"]) for error in report["errors"]]
    assert run.returncode == 2
    assert sorted(found) == [
        ("unknown-column", 7), ("unknown-node", 6), ("unknown-option", 3), ("unknown-type", 4),
    ]  # fmt: skip
