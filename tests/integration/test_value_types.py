"""Types of computed values that are known without Spark: they are those of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlglot import exp

from penstock.sql.facts import parse_facts
from penstock.sql.value_types import _OF_FUNCTIONS, computed_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

_OVER = "OVER (PARTITION BY t ORDER BY t)"
PARTS = ("day", "dayofmonth", "hour", "minute", "month", "quarter", "second", "year")
FUNCTIONS = [
    *(f"{part}({time})" for part in (*PARTS, "to_date") for time in ("t", "n", "s")),
    *(f"date_trunc('day', {time})" for time in ("t", "n", "d", "s")),
    *(f"date_format({time}, 'yyyy-MM-dd')" for time in ("t", "n", "d", "s")),
    "year(d)", "to_date(d)", "to_date(s, 'yyyy-MM-dd')", "count(*)", "count(DISTINCT t)",
    "count(t) FILTER (WHERE d IS NULL)", f"count(*) {_OVER}", f"row_number() {_OVER}",
    f"rank() {_OVER}", f"dense_rank() {_OVER}", "CAST(s AS INTEGER)", "try_cast(s AS short)",
    "s::long", "CAST(s AS DECIMAL(10,2))",
]  # fmt: skip


def test_types_are_those_of_spark(penstock_spark: SparkSession) -> None:
    rows = penstock_spark.sql(
        "SELECT now() AS t, localtimestamp() AS n, current_date() AS d, '2026-01-01' AS s"
    )
    rows.createOrReplaceTempView("typed_values")
    seen = set()
    for text in FUNCTIONS:
        query = f"SELECT {text} AS x FROM typed_values"
        (value,) = parse_facts(query).tree.expressions
        seen.add(type(_inner(value.unalias())))
        found = penstock_spark.sql(query).schema["x"].dataType.simpleString()
        expected = found.upper().replace(",", ", ")
        assert computed_type(value.unalias()) == expected, text
    assert _OF_FUNCTIONS.keys() <= seen


def test_types_that_depend_on_operands_are_not_known() -> None:
    for text in ("max(t)", "upper(s)", "sum(s)", "t + 1", f"max(t) {_OVER}", "concat(s, t)", "s"):
        (value,) = parse_facts(f"SELECT {text} AS x FROM typed_values").tree.expressions
        assert computed_type(value.unalias()) == "", text


def _inner(value: exp.Expr) -> exp.Expr:
    while isinstance(value, exp.Filter | exp.Window):
        value = value.this
    return value
