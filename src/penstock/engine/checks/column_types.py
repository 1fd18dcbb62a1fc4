"""Columns of the nodes of a plan, from Spark's analysis, and the checks of all its queries."""

from __future__ import annotations

from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.core.errors import PenstockError, raise_all
from penstock.engine.analysis.column_checks import check_sink_schema
from penstock.engine.analysis.errors import (
    collect_errors,
    locate_errors,
    semi_join_error,
    streaming_error,
)
from penstock.engine.analysis.syntax import text_errors
from penstock.engine.build import Builder
from penstock.engine.catalyst.java_names import java_names
from penstock.engine.catalyst.java_trees import children_of, is_stream
from penstock.engine.catalyst.spark_plan import analyzed_plan, class_name, streaming_operators
from penstock.engine.checks.patterns import check_patterns
from penstock.engine.late.late_search import find_late_rows
from penstock.engine.windows.distinct import by_distinct_values
from penstock.engine.windows.window_bounds import by_whole_windows
from penstock.plan.model import Plan, Query
from penstock.plan.queries import queries_without_sinks


def column_types(
    builder: Builder, errors: dict[str, PenstockError] | None = None, *, unread: bool = False
) -> dict[str, StructType]:
    """Returns the columns of all sources and transforms from Spark. Reads no data.

    Checks the sinks, and with `unread` also transforms that no node reads, and the SQL texts below
    a node with an error. `errors` are known errors by node. Raises UserError, or ValidationErrors
    with the errors of all nodes.
    """
    plan = builder.plan
    types: dict[str, StructType] = {}
    typed: dict[str, dict[str, DataFrame]] = {}
    errors = {} if errors is None else errors
    for node in plan.nodes.values():
        if node.name not in errors:
            with collect_errors(errors, node.name):
                check_patterns(plan, node, builder.session)
    unread_nodes = queries_without_sinks(plan.nodes, plan.streams) if unread else ()
    for query in (*plan.queries, *unread_nodes):
        typed[query.name] = frames = builder.typed_frames(query, errors)
        types |= {name: frame.schema for name, frame in frames.items()}
        if query.root in frames and query.root in plan.streams:
            with collect_errors(errors, query.root):
                check_streamable(plan, query, frames[query.root], builder.session)
                if any(plan.nodes[n].late == "dead_letter" for n in query.stream_nodes):
                    find_late_rows(builder, query, frames[query.root], builder.computed_watermarks)
        for name in query.sinks:
            sink = plan.nodes[name]
            if sink.inputs[0] in frames:
                with collect_errors(errors, name), locate_errors(plan, sink):
                    check_sink_schema(sink, frames[sink.inputs[0]].schema)
    below = [node for name, node in plan.nodes.items() if name not in errors.keys() | types.keys()]
    if unread and below:
        builder.register_functions(builder.session)
        for node in below:
            with collect_errors(errors, node.name):
                raise_all(text_errors(plan, [node], builder.session))
    raise_all(errors.values())
    builder.analysis.typed |= typed
    return types


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
    sides = children_of(join)
    groups = [next(streaming_operators(side, "Aggregate"), None) for side in sides]
    return all(map(is_stream, sides)) and any(groups)
