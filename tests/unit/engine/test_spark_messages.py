"""Messages of Spark, without the numbers that Spark gives to columns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException

from penstock import app
from penstock.engine.analysis.errors import streaming_error, translate
from penstock.engine.catalyst.messages import without_column_ids

PIPELINE = """
sources: {orders: {type: memory, rows: [], schema: AMOUNT DOUBLE}}
transforms: {sums: {type: sql, sql: SELECT sum(AMOUNT) AS total FROM orders}}
sinks: {out: {type: blackhole, from: sums}}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the column AMOUNT#58 is null", "the column AMOUNT is null"),
        ("(id#1L = `my id`#22)", "(id = `my id`)"),
        ("window(at#3, 1 hour)#4", "window(at, 1 hour)"),
        ("issue #12", "issue #12"),
    ],
)
def test_column_ids(text: str, expected: str) -> None:
    assert without_column_ids(text) == expected


def test_errors_of_nodes_have_no_column_ids(tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(PIPELINE)
    plan = app.plan(tmp_path / "shop.yaml")
    error = AnalysisException("[A_CODE] Cannot compute sum(AMOUNT#58) of AMOUNT#58. Details")
    for translated in (
        translate(plan, plan.nodes["sums"], error),
        streaming_error(plan, replace(plan.queries[0], root="sums"), error),
    ):
        assert "#58" not in translated.message
        assert "sum(AMOUNT)" in translated.message
