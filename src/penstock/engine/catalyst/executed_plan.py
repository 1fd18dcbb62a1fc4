"""Executed plans: the physical plan of a batch, applied to the rows of later batches.

The optimization and the planning of a frame cost more than a batch of few rows, and so do the
events of an SQL execution. A batch runs within the SQL execution of its query already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

from penstock.engine.catalyst.java_names import java_names
from penstock.engine.catalyst.java_trees import children_of, expressions_of, is_constant
from penstock.engine.catalyst.spark_plan import analyzed_plan, class_name, equal_nodes, frame_of

_OPERATORS = frozenset({
    "FilterExec", "GenerateExec", "InputAdapter", "MapInArrowExec", "ProjectExec",
    "WholeStageCodegenExec",
})  # fmt: skip
"""Operators that keep nothing of a batch and do not depend on the partitioning of its rows."""
_TIME_WORDS = ("epoch", "now", "today", "tomorrow", "yesterday")
"""Texts that Spark's optimizer replaces by times."""


@dataclass(frozen=True)
class PhysicalRows:
    """The rows of a physical plan, not computed yet. All columns are texts."""

    plan: Any
    names: Sequence[str]
    sparkSession: SparkSession

    @classmethod
    def of(cls, frame: DataFrame) -> PhysicalRows:
        """Returns the rows of a frame of texts."""
        return cls(_physical_plan(frame), frame.columns, frame.sparkSession)

    def collect(self) -> list[Row]:
        """Computes the rows."""
        make = Row(*self.names)
        width = len(self.names)
        rows = self.plan.executeCollectPublic()
        return [make(*(row.getString(column) for column in range(width))) for row in rows]


@dataclass(frozen=True)
class ExecutedPlan:
    """The physical operators of a frame above its input, from the input upwards, as Java objects.

    `columns` is the output of the input. `names` are the columns of the frame. `scan` are the
    arguments of the operator that reads the input, after its columns and its RDD.
    """

    operators: Sequence[Any]
    columns: Any
    names: Sequence[str]
    scan: Sequence[Any]
    _make_scan: Any
    _utils: Any

    @classmethod
    def of(cls, frame: DataFrame, input_: DataFrame) -> ExecutedPlan | None:
        """Returns the plan of a frame of texts, which Spark computes from `input_` without shuffle.

        Returns None for other frames, and if Spark's optimizer chooses values for the batch, as the
        current time. Reads no data. A plan with random values is the matter of the caller.
        """
        java: Any = java_names(frame.sparkSession)
        spark = java.org.apache.spark
        leaf, analyzed = analyzed_plan(input_), analyzed_plan(frame)
        clock = spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE()
        if class_name(leaf) != "LogicalRDD" or analyzed.containsPattern(clock):
            return None
        if any(map(_contains_time_word, _operators_above(leaf, analyzed))):
            return None
        plan = _physical_plan(frame)
        operators = []
        while class_name(plan) != "RDDScanExec":
            if class_name(plan) not in _OPERATORS:
                return None
            operators.append(plan)
            (plan,) = children_of(plan)
        if not plan.rdd().equals(leaf.rdd()) or not plan.output().equals(leaf.output()):
            return None
        operators.reverse()
        scan = (plan.name(), plan.outputPartitioning(), plan.outputOrdering(), plan.stream())
        make_scan, utils = spark.sql.execution.RDDScanExec, spark.api.python.PythonUtils
        return cls(operators, leaf.output(), frame.columns, scan, make_scan, utils)

    def apply(self, input_: DataFrame) -> PhysicalRows | None:
        """Returns the rows for other rows of the input; None if its columns are others.

        Call and compute on the thread of the query, whose session is the active one.
        """
        leaf = analyzed_plan(input_)
        columns = leaf.output()
        if not columns.equals(self.columns):
            return None
        plan = self._make_scan(columns, leaf.rdd(), *self.scan)
        for operator in self.operators:
            plan = operator.withNewChildren(self._utils.toSeq([plan]))
        return PhysicalRows(plan, self.names, input_.sparkSession)


def _physical_plan(frame: DataFrame) -> Any:
    java_frame: Any = frame._jdf
    return java_frame.queryExecution().executedPlan()


def compute(frame: DataFrame) -> None:
    """Computes all rows of a frame; those that are cached now are read, or cached."""
    current = frame_of(analyzed_plan(frame), frame.sparkSession)
    _physical_plan(current).execute().count()


def _operators_above(leaf: Any, plan: Any) -> list[Any]:
    """Returns the operators of an analyzed plan without its leaf."""
    pending, found = [plan], []
    while pending:
        operator = pending.pop()
        if not equal_nodes(operator, leaf):
            found.append(operator)
            pending += children_of(operator)
    return found


def _contains_time_word(operator: Any) -> bool:
    """Returns whether a constant text that may be the word of a time is cast in an operator."""
    pending = expressions_of(operator)
    while pending:
        expression = pending.pop()
        children = children_of(expression)
        if class_name(expression) == "Cast" and is_constant(children[0]):
            text = children[0].toString().lower()
            constant = class_name(children[0]) == "Literal"
            if not constant or any(word in text for word in _TIME_WORDS):
                return True
        pending += children
    return False
