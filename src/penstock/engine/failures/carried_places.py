"""Places of rows, carried through transforms that compute each row from one row."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame

from penstock.engine.build import Builder
from penstock.engine.catalyst.spark_plan import frame_of, scala_items
from penstock.engine.failures.placed_rows import NUMBER, PLACE
from penstock.engine.row_checks.checked_plan import CheckedPlan, without_ctes
from penstock.plan.model import Query
from penstock.plan.node import Node


def carry(builder: Builder, query: Query, node: Node, rows: DataFrame) -> DataFrame | None:
    """Returns the output of a node for rows with places, with the places. Reads no data.

    Rows on which the node fails are left out. Returns None if the node combines rows, or if its
    expressions cannot be checked.
    """
    input_ = rows.drop(PLACE)
    try:
        plan = without_ctes(builder.output(node, input_, query))
        carried = _CarriedPlan(rows.sparkSession, input_, rows).carry(plan)
        return None if carried is None else frame_of(carried, rows.sparkSession)
    except (AnalysisException, Py4JError):
        return None


class _CarriedPlan(CheckedPlan):
    """A plan whose rows have the places of their input rows."""

    def carry(self, plan: Any) -> Any | None:
        """Returns a plan of the same output with the places, or None without one."""
        passing = self.visit(plan)
        if passing is None:
            return None
        return self.plans.Project(self.sequence([*scala_items(plan.output()), self.row]), passing)

    def divide(self, checked: Any, result: Any) -> Any:
        return self.plans.Filter(self.expressions.IsNotNull(result), checked)

    def always(self) -> Column:
        return self.column(self.row).getField(NUMBER) >= 0
