"""Errors of an expression, evaluated row by row in the JVM of the driver."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame

from penstock.engine.java_names import java_names
from penstock.engine.spark_plan import analyzed_plan, scala_sequence

_EVALUATOR = """
public Object apply(Object function, Object rows) {
  Object[] all = (Object[]) rows;
  StringBuilder text = new StringBuilder();
  for (int i = 0; i < all.length; i++) {
    text.append(((org.apache.spark.sql.catalyst.InternalRow) all[i]).getLong(0)).append(' ');
    try {
      ((scala.Function1) function).apply(all[i]);
    } catch (Exception error) {
      String message = String.valueOf(error.getMessage()).replace('\\0', ' ');
      int end = message.indexOf("\\n== ");
      text.append(end < 0 ? message : message.substring(0, end));
    }
    text.append('\\0');
  }
  return text.toString();
}
"""
"""Applies a function to rows. Returns the first column and the error of each row as text.

One call for all rows: a call from Python for each row would take a millisecond. Spark compiles its
own plans by the same compiler.
"""


def row_errors(rows: DataFrame, expression: Any) -> Iterator[tuple[int, str]]:
    """Yields the first column of each row, a LONG, and the message of the row's error.

    The error is that of evaluating a Catalyst expression on the row; empty if it does not fail.
    """
    java: Any = java_names(rows.sparkSession)
    projection = java.org.apache.spark.sql.catalyst.expressions.InterpretedMutableProjection(
        scala_sequence(java, [expression]), analyzed_plan(rows).output()
    )
    frame: Any = rows._jdf
    collected = frame.queryExecution().executedPlan().executeCollect()
    text = _evaluator(rows.sparkSession.sparkContext._gateway).apply(projection, collected)
    for line in text.split("\0")[:-1]:
        number, _, message = line.partition(" ")
        yield int(number), message


@lru_cache(maxsize=1)
def _evaluator(gateway: Any) -> Any:
    """Returns a Java function of the text `_EVALUATOR`.

    Py4J finds methods by the name of the class, so each compilation has a name of its own.
    """
    java = gateway.jvm
    compiler = java.org.codehaus.janino.ClassBodyEvaluator()
    compiler.setClassName(f"penstock.RowErrors{uuid4().hex}")
    compiler.setParentClassLoader(java.org.apache.spark.util.Utils.getContextOrSparkClassLoader())
    interfaces = gateway.new_array(java.java.lang.Class, 1)
    interfaces[0] = java.java.lang.Class.forName("java.util.function.BiFunction")
    compiler.setImplementedInterfaces(interfaces)
    return compiler.createInstance(java.java.io.StringReader(_EVALUATOR))
