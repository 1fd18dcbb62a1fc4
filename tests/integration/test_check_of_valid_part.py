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


UNKNOWN_COLUMNS = """
sources:
  broken: {type: generate, fields: {id: {type: choice, values: [1]}}}
transforms:
  query: {type: sql, sql: "SELECT id,, FROM broken"}
  condition: {type: filter, from: query, where: id > > 3}
  columns: {type: select, from: broken, columns: {twice: "2 * id", half: "id / / 2"}}
  window: {type: sql, sql: "SELECT count(*) AS n FROM broken GROUP BY tumble(interval '1 minute')"}
sinks:
  out: {type: print, from: condition, mode: replace}
  rest: {type: blackhole, from: window}
"""


def test_check_reports_syntax_and_modes_downstream_of_an_error(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(UNKNOWN_COLUMNS)
    run = cli(tmp_path, "check", "shop.yaml", "--json")
    found = [(error["code"], error["line"]) for error in json.loads(run.stdout)["errors"]]
    assert sorted(found) == [
        ("missing-option", 3), ("sql-syntax", 5), ("sql-syntax", 6), ("sql-syntax", 7),
        ("unknown-option", 3), ("unsupported-mode", 10),
    ]  # fmt: skip
