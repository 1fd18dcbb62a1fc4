"""Access to Spark's analyzed plans and to Scala collections."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

WATERMARK_DELAY = "spark.watermarkDelayMs"
"""The key of Spark's metadata of a column with a watermark."""
TIME_WINDOW = "spark.timeWindow"
SESSION_WINDOW = "spark.sessionWindow"
WINDOWS = (TIME_WINDOW, SESSION_WINDOW)
"""The keys of Spark's metadata of a column of windows."""


def analyzed_plan(frame: DataFrame) -> Any:
    """Returns the analyzed logical plan of a DataFrame, a Java object. Reads no data."""
    java_frame: Any = frame._jdf
    return java_frame.queryExecution().analyzed()


def scala_items(sequence: Any) -> list[Any]:
    """Returns the items of a Scala sequence."""
    return [sequence.apply(index) for index in range(sequence.size())]


def class_name(node: Any) -> str:
    """Returns the name of the Scala class or object of a plan, an expression or a type."""
    return str(node.getClass().getSimpleName()).rstrip("$")


def scala_sequence(java: Any, items: Sequence[Any]) -> Any:
    """Returns Java objects as a Scala sequence."""
    return java.org.apache.spark.api.python.PythonUtils.toSeq(list(items))


def map_children(node: Any, function: Callable[[Any], Any], java: Any) -> Any:
    """Returns a plan or an expression with new children; itself if the function changes none."""
    children = scala_items(node.children())
    mapped = [function(child) for child in children]
    if all(new is old for new, old in zip(mapped, children, strict=True)):
        return node
    return node.withNewChildren(scala_sequence(java, mapped))


def has_metadata(column: Any, *keys: str) -> bool:
    """Returns whether the metadata of a named expression has one of the keys."""
    return any(column.metadata().contains(key) for key in keys)


def frame_of(plan: Any, session: SparkSession) -> DataFrame:
    """Returns the DataFrame of a logical plan, a Java object. Reads no data."""
    java: Any = session._jvm
    spark: Any = session._jsparkSession
    return DataFrame(java.org.apache.spark.sql.classic.Dataset.ofRows(spark, plan), session)


def streaming_operators(plan: Any, kind: str) -> Iterator[Any]:
    """Yields the operators of a class over streams in a logical plan."""
    if plan.isStreaming():
        if class_name(plan) == kind:
            yield plan
        for child in scala_items(plan.children()):
            yield from streaming_operators(child, kind)
