"""Checks of the rows of a DataFrame: the input rows on which its expressions fail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import monotonically_increasing_id

from penstock.core.errors import RecordError
from penstock.engine.catalyst.java_functions import compile_java
from penstock.engine.catalyst.java_names import java_names
from penstock.engine.catalyst.java_trees import references_of
from penstock.engine.catalyst.spark_plan import analyzed_plan, frame_of, scala_items, scala_sequence
from penstock.engine.row_checks.checked_plan import ROW, CheckedPlan, without_ctes
from penstock.engine.row_checks.data_errors import parse_data_error


@dataclass(frozen=True)
class Check:
    """A check before one operator: the rows on which an expression fails."""

    session: SparkSession
    failing: Any
    row: Any
    expression: Any

    def numbers(self) -> pa.Int64Array:
        """Returns the numbers of the input rows of failing rows."""
        return self._select([self.row]).toArrow().column(0).combine_chunks()

    def errors(self, first: int, last: int) -> Iterator[tuple[int, RecordError]]:
        """Yields the numbers of input rows in a range and the errors of the rows."""
        references = references_of(self.expression)
        read = [each for each in references if not each.exprId().equals(self.row.exprId())]
        rows = self._select([self.row, *read]).where(f"{ROW} BETWEEN {first} AND {last}")
        yield from row_errors(rows, self.expression)

    def _select(self, attributes: Sequence[Any]) -> DataFrame:
        java: Any = java_names(self.session)
        plans = java.org.apache.spark.sql.catalyst.plans.logical
        return frame_of(plans.Project(scala_sequence(java, attributes), self.failing), self.session)


def number_rows(frame: DataFrame) -> DataFrame:
    """Returns a frame with the column `ROW`, the number of each row, which is last."""
    return frame.withColumn(ROW, monotonically_increasing_id())


def find_checks(frame: DataFrame, input_: DataFrame, numbered: DataFrame) -> list[Check]:
    """Returns the checks of a frame that is computed from `input_`. Reads no data.

    The checks read the rows from `numbered`, the same rows with the column `ROW`. Operators that
    combine rows end the search: operators above them are not checked.
    """
    search = CheckSearch(frame.sparkSession, input_, numbered)
    search.visit(without_ctes(frame))
    return search.checks


class CheckSearch(CheckedPlan):
    """A search for the checks of a plan. `checks` are those that `visit` has found."""

    def __init__(self, session: SparkSession, input_: DataFrame, numbered: DataFrame) -> None:
        super().__init__(session, input_, numbered)
        self.checks: list[Check] = []

    def divide(self, checked: Any, result: Any) -> Any:
        failing = self.plans.Filter(self.expressions.IsNull(result), checked)
        self.checks.append(Check(self.session, failing, self.row, self._finish(checked)))
        return self.plans.Filter(self.expressions.IsNotNull(result), checked)

    def _finish(self, checked: Any) -> Any:
        """Returns the struct of a check, ready for evaluation outside of Spark's plans."""
        rules = self.java.org.apache.spark.sql.catalyst.optimizer
        finished = rules.ReplaceExpressions.apply(rules.ComputeCurrentTime.apply(checked))
        return scala_items(finished.projectList())[-1].child().child()


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
