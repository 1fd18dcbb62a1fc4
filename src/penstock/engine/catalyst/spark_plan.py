"""Access to Spark's analyzed plans and to Scala collections."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from penstock.engine.catalyst.java_names import java_names, names_of_client
from penstock.engine.catalyst.java_trees import (
    CLASS_NAME,
    children_of,
    contains_pattern,
    expressions_of_class,
    is_stream,
    items_of,
    parts_of,
    replace_children,
    to_sequence,
    with_expressions,
)

WATERMARK_DELAY = "spark.watermarkDelayMs"
"""The key of Spark's metadata of a column with a watermark."""
TIME_WINDOW = "spark.timeWindow"
SESSION_WINDOW = "spark.sessionWindow"
WINDOWS = (TIME_WINDOW, SESSION_WINDOW)
"""The keys of Spark's metadata of a column of windows."""
_PLAN = "_penstock_plan"
"""The attribute of a DataFrame with its analyzed plan."""


def analyzed_plan(frame: DataFrame) -> Any:
    """Returns the analyzed logical plan of a DataFrame, a Java object. Reads no data."""
    known = vars(frame).get(_PLAN)
    if known is None:
        java_frame: Any = frame._jdf
        known = vars(frame)[_PLAN] = java_frame.logicalPlan()
    return known


def scala_items(sequence: Any) -> list[Any]:
    """Returns the items of a Scala sequence."""
    return items_of(sequence)


def class_name(node: Any) -> str:
    """Returns the name of the Scala class or object of a plan, an expression or a type."""
    known: str | None = vars(node).get(CLASS_NAME)
    if known is None:
        java = names_of_client(node._gateway_client)
        known = str(java.org.apache.commons.lang3.ClassUtils.getSimpleName(node)).rstrip("$")
        vars(node)[CLASS_NAME] = known
    return known


def equal_nodes(one: Any, other: Any) -> bool:
    """Returns whether two plans or expressions are equal."""
    return class_name(one) == class_name(other) and bool(one.equals(other))


def scala_sequence(java: Any, items: Sequence[Any]) -> Any:
    """Returns Java objects, or values that py4j converts, as a Scala sequence."""
    return to_sequence(java.org.apache.spark.api.python.PythonUtils.toSeq, items)


def map_children(node: Any, function: Callable[[Any], Any]) -> Any:
    """Returns a plan or an expression with new children; itself if the function changes none."""
    children = children_of(node)
    return with_children(node, children, [function(child) for child in children])


def with_children(node: Any, old: Sequence[Any], new: Sequence[Any]) -> Any:
    """Returns a plan or an expression with new children; itself if they are the old ones."""
    if all(one is other for one, other in zip(new, old, strict=True)):
        return node
    return replace_children(node, new)


def replace_expressions(
    expression: Any, replaced: Sequence[tuple[Any, Any]], *, within_aggregates: bool
) -> Any:
    """Returns an expression with the second of each pair in place of expressions like the first.

    `within_aggregates` includes the arguments of aggregate functions.
    """
    for old, new in replaced:
        if expression.semanticEquals(old):
            return new
    if not within_aggregates and class_name(expression) == "AggregateExpression":
        return expression
    return map_children(
        expression,
        lambda child: replace_expressions(child, replaced, within_aggregates=within_aggregates),
    )


_SUBQUERIES = ("Exists", "LateralSubquery", "ListQuery", "ScalarSubquery")

Rewrite = Callable[[Any, Any], Any]
"""A function of an operator and the Java packages: returns the operator itself or another one."""


def rewrite_streams(frame: DataFrame, rewrite: Rewrite, *patterns: str) -> DataFrame:
    """Returns a frame in which `rewrite` replaced operators over streams: `rewrite_operators`."""
    return rewrite_operators(frame, rewrite, *patterns, only_streams=True)


def rewrite_operators(
    frame: DataFrame,
    rewrite: Rewrite,
    *patterns: str,
    only_streams: bool = False,
    subqueries: bool = False,
) -> DataFrame:
    """Returns a frame in which `rewrite` replaced operators, from below upwards.

    Parts of the plan that have none of the operators are skipped: `patterns` are names of
    Spark's TreePattern, as `AGGREGATE`. With `subqueries` also the operators of subqueries are
    replaced. Reads no data.
    """
    java: Any = java_names(frame.sparkSession)
    names = " ".join(patterns)

    def visit(part: Any) -> Any:
        below = parts_of(part, names, only_streams)
        new = [visit(child) if contains else child for child, contains in below]
        part = with_children(part, [child for child, _ in below], new)
        if subqueries and contains_pattern(part, "PLAN_EXPRESSION", only_streams):
            part = with_expressions(part, list(visited(part)))
        return rewrite(part, java)

    def visited(part: Any) -> Iterator[tuple[Any, Any]]:
        """Yields the subqueries in the expressions of an operator with others in their place."""
        for kind in _SUBQUERIES:
            for subquery in expressions_of_class(part, kind):
                plan = subquery.plan()
                if contains_pattern(plan, names, only_streams):
                    yield subquery, subquery.withNewPlan(visit(plan))

    plan = analyzed_plan(frame)
    if not contains_pattern(plan, names, only_streams):
        return frame
    rewritten = visit(plan)
    return frame if rewritten is plan else frame_of(rewritten, frame.sparkSession)


def conjuncts(condition: Any) -> list[Any]:
    """Returns the parts of a condition that AND combines."""
    if class_name(condition) != "And":
        return [condition]
    return [part for side in children_of(condition) for part in conjuncts(side)]


def has_metadata(column: Any, *keys: str) -> bool:
    """Returns whether the metadata of a named expression has one of the keys."""
    return any(column.metadata().contains(key) for key in keys)


def frame_of(plan: Any, session: SparkSession) -> DataFrame:
    """Returns the DataFrame of a logical plan, a Java object. Reads no data."""
    java: Any = java_names(session)
    spark: Any = session._jsparkSession
    return DataFrame(java.org.apache.spark.sql.classic.Dataset.ofRows(spark, plan), session)


def streaming_operators(plan: Any, kind: str) -> Iterator[Any]:
    """Yields the operators of a class over streams in a logical plan."""
    if is_stream(plan):
        if class_name(plan) == kind:
            yield plan
        for child in children_of(plan):
            yield from streaming_operators(child, kind)
