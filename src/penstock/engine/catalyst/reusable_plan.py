"""Reusable plans: the analyzed plan of a batch, applied to the rows of later batches.

The analysis of a plan costs more than a batch of few rows. The input of a batch is a leaf, with the
same columns in each batch. Only the operators between this leaf and the root of the plan are made
again, as copies, and a copy is analyzed if the original is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from penstock.engine.catalyst.fallible_expressions import OPAQUE
from penstock.engine.catalyst.java_names import java_names
from penstock.engine.catalyst.java_trees import children_of, expressions_of, is_deterministic
from penstock.engine.catalyst.spark_plan import analyzed_plan, class_name, equal_nodes

_OPERATORS = frozenset({
    "Aggregate", "ArrowEvalPython", "Distinct", "Filter", "Generate", "MapInArrow", "Project",
    "Repartition", "RepartitionByExpression", "Sort", "Window",
})  # fmt: skip
"""Operators whose analysis does not depend on the batch. The seed of a sample does."""
_SUBQUERIES = OPAQUE - {"PythonUDF"}


@dataclass(frozen=True)
class ReusablePlan:
    """The operators of a frame above its input, from the input upwards, as Java objects.

    `columns` is the output of the input.
    """

    operators: Sequence[Any]
    columns: Any
    _dataset: Any
    _utils: Any

    @classmethod
    def of(cls, frame: DataFrame, input_: DataFrame) -> ReusablePlan | None:
        """Returns the plan of a frame that is computed from `input_`. Reads no data.

        Returns None if the plan has other inputs, or if its analysis chooses values for the batch,
        as the seeds of `rand()` and `uuid()`.
        """
        java: Any = java_names(frame.sparkSession)
        spark = java.org.apache.spark
        leaf = analyzed_plan(input_)
        analysis = spark.sql.catalyst.analysis
        plan = analysis.EliminateView.apply(analyzed_plan(frame))
        plan = analysis.EliminateSubqueryAliases.apply(plan)
        operators = []
        while not equal_nodes(plan, leaf):
            children = children_of(plan)
            if len(children) != 1 or not _is_reusable(plan):
                return None
            operators.append(plan)
            (plan,) = children
        operators.reverse()
        utils = spark.api.python.PythonUtils
        return cls(operators, leaf.output(), spark.sql.classic.Dataset, utils)

    def apply(self, input_: DataFrame) -> DataFrame | None:
        """Returns the frame for other rows of the input; None if its columns are others."""
        plan = analyzed_plan(input_)
        if not plan.output().equals(self.columns):
            return None
        for operator in self.operators:
            plan = operator.withNewChildren(self._utils.toSeq([plan]))
        plan.setAnalyzed()
        session: Any = input_.sparkSession
        return DataFrame(self._dataset.ofRows(session._jsparkSession, plan), session)


def _is_reusable(operator: Any) -> bool:
    if class_name(operator) not in _OPERATORS:
        return False
    pending = expressions_of(operator)
    if not all(map(is_deterministic, pending)):
        return False
    while pending:
        expression = pending.pop()
        if class_name(expression) in _SUBQUERIES:
            return False
        pending += children_of(expression)
    return True
