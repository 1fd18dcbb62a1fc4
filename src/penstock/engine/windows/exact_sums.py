"""Sums of BIGINT in streams: their state is exact, so that only the total of a group overflows.

The state has another column for each sum. A query that has started with sums of Spark keeps them.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from penstock.engine.catalyst.exact_sums import with_exact_sums
from penstock.engine.catalyst.logical_plans import Catalyst
from penstock.engine.catalyst.spark_plan import class_name, rewrite_streams


def by_exact_sums(frame: DataFrame) -> DataFrame:
    """Returns a stream without sums of BIGINT that overflow in parts, which has the same rows."""
    catalyst = Catalyst(frame.sparkSession)

    def rewrite(plan: Any, _: Any) -> Any:
        return with_exact_sums(catalyst, plan) if class_name(plan) == "Aggregate" else plan

    return rewrite_streams(frame, rewrite, "AGGREGATE")
