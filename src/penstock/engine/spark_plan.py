"""Access to Spark's analyzed plans and to Scala collections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession


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
