"""Errors of an expression, evaluated row by row in the JVM of the driver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

from penstock.core.errors import RecordError
from penstock.engine.catalyst.java_functions import compile_java
from penstock.engine.catalyst.java_names import java_names
from penstock.engine.catalyst.spark_plan import analyzed_plan, scala_sequence
from penstock.engine.row_checks.data_errors import parse_data_error

_EVALUATOR = """
public Object apply(Object function, Object rows) {
  Object[] all = (Object[]) rows;
  StringBuilder text = new StringBuilder();
  for (int i = 0; i < all.length; i++) {
    text.append(((org.apache.spark.sql.catalyst.InternalRow) all[i]).getLong(0)).append(' ');
    try {
      ((scala.Function1) function).apply(all[i]);
    } catch (Exception error) {
      text.append(error.getClass().getName()).append(": ");
      text.append(String.valueOf(error.getMessage()).replace('\\0', ' '));
    }
    text.append('\\0');
  }
  return text.toString();
}
"""
"""Applies a function to rows. Returns the first column and the error of each row as text."""


def row_errors(rows: DataFrame, expression: Any) -> Iterator[tuple[int, RecordError]]:
    """Yields the first column, a LONG, and the error of each row on which an expression fails."""
    java: Any = java_names(rows.sparkSession)
    projection = java.org.apache.spark.sql.catalyst.expressions.InterpretedMutableProjection(
        scala_sequence(java, [expression]), analyzed_plan(rows).output()
    )
    frame: Any = rows._jdf
    collected = frame.queryExecution().executedPlan().executeCollect()
    evaluate = compile_java(rows.sparkSession.sparkContext._gateway, _EVALUATOR)
    text = evaluate.apply(projection, collected)
    for line in text.split("\0")[:-1]:
        number, _, message = line.partition(" ")
        if message:
            yield int(number), parse_data_error(message)
