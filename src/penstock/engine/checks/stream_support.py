"""Check that Spark can compute a query as a stream."""

from __future__ import annotations

from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from penstock.engine.analysis.errors import semi_join_error, streaming_error
from penstock.engine.catalyst.java_names import java_names
from penstock.engine.catalyst.spark_plan import (
    analyzed_plan,
    class_name,
    scala_items,
    streaming_operators,
)
from penstock.engine.windows.distinct import by_distinct_values
from penstock.engine.windows.window_bounds import by_whole_windows
from penstock.plan.model import Plan, Query


def check_streamable(plan: Plan, query: Query, root: DataFrame, session: SparkSession) -> None:
    """Raises PlanError if Spark cannot compute the root as a stream in the query's mode."""
    jvm = java_names(session)
    assert jvm is not None
    modes = jvm.org.apache.spark.sql.streaming.OutputMode
    mode = modes.Update() if query.output_mode == "update" else modes.Append()
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    analyzed = analyzed_plan(by_distinct_values(by_whole_windows(root)))
    try:
        # Of several aggregations Spark checks only one for an event time.
        for part in (analyzed, *streaming_operators(analyzed, "Aggregate")):
            checker.checkForStreaming(part, mode)
    except AnalysisException as error:
        raise streaming_error(plan, query, error) from error
    for join in streaming_operators(analyzed, "Join"):
        if class_name(join.joinType()) == "LeftSemi" and _joins_groups(join):
            raise semi_join_error(plan, query)


def _joins_groups(join: Any) -> bool:
    """Returns whether a join of streams reads groups, of which Spark's semi join returns none."""
    sides = scala_items(join.children())
    groups = [next(streaming_operators(side, "Aggregate"), None) for side in sides]
    return all(side.isStreaming() for side in sides) and any(groups)
