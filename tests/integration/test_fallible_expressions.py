"""Fallible SQL: expressions that fail on some values under ANSI."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from penstock.engine.catalyst.fallible_expressions import is_fallible

pytestmark = pytest.mark.spark

COLUMNS = "id LONG, n INT, price DOUBLE, text STRING, at TIMESTAMP"


@pytest.mark.parametrize(
    "sql",
    [
        "id / n",
        "n + 1",
        "cast(text AS INT)",
        "cast(price AS INT)",
        "to_timestamp(text)",
        "split(text, ',')[3]",
        "element_at(split(text, ','), n)",
        "split_part(text, '/', n)",
        "if(n > 0, cast(text AS DATE), NULL)",
        "raise_error(text)",
        "text LIKE text",
        "text RLIKE text",
        "regexp_replace(text, text, 'x')",
    ],
)
def test_fallible(penstock_spark: SparkSession, sql: str) -> None:
    frame = penstock_spark.createDataFrame([], COLUMNS)
    assert is_fallible(frame.selectExpr(f"{sql} AS x").where("x IS NOT NULL"))


@pytest.mark.parametrize(
    "sql",
    [
        "id",
        "price * n",
        "upper(concat(text, '-', id))",
        "cast(n AS LONG)",
        "try_cast(text AS INT)",
        "try_divide(id, n)",
        "split_part(text, '/', 2)",
        "date_trunc('HOUR', at)",
        "coalesce(text, 'x') IN ('a', 'b')",
        "at > '2026-01-01'",
        "cast('2026-01-01' AS DATE)",
        "1 + 2",
        "nullif(text, '')",
        "left(text, 3)",
        "nvl(text, 'x')",
        "text ILIKE 'a%'",
        "try_multiply(n, n)",
        "text RLIKE 'a+'",
        "regexp_replace(text, 'a+', 'b')",
    ],
)
def test_infallible(penstock_spark: SparkSession, sql: str) -> None:
    frame = penstock_spark.createDataFrame([], COLUMNS)
    assert not is_fallible(frame.selectExpr(f"{sql} AS x").where("x IS NOT NULL"))


def test_functions_in_python(penstock_spark: SparkSession) -> None:
    frame = penstock_spark.createDataFrame([], COLUMNS)
    assert is_fallible(frame.select(udf(lambda number: 1 // number, "long")("n")))
    assert not is_fallible(frame.mapInArrow(lambda batches: batches, frame.schema))
