"""Reusable changes: the plans of a batch of updating transforms, applied to later batches.

To make and analyze these plans takes more time than a batch of few rows. They read the rows of the
batch and of operators with state, which are leaves with the same columns in each batch. Plans that
depend on the batch otherwise are made anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from penstock.engine.catalyst.fallible_expressions import OPAQUE
from penstock.engine.catalyst.java_trees import (
    children_of,
    expressions_of,
    is_deterministic,
    with_nodes,
)
from penstock.engine.catalyst.logical_plans import Catalyst
from penstock.engine.catalyst.spark_plan import analyzed_plan, class_name, scala_items
from penstock.engine.updating.batch import UpdatingBatch
from penstock.engine.updating.steps import StateStep

_OPERATORS = frozenset({
    "Aggregate", "ArrowEvalPython", "Distinct", "Expand", "Filter", "Generate", "GlobalLimit",
    "Join", "LocalLimit", "LogicalRDD", "MapInArrow", "Project", "Repartition",
    "RepartitionByExpression", "Sort", "SubqueryAlias", "Union", "View", "Window",
})  # fmt: skip
"""Operators whose analysis does not depend on the batch."""
_OF_PARTITION = "MonotonicallyIncreasingID"
"""A function without a constant that its analysis chooses, though it is not deterministic."""
_SUBQUERIES = OPAQUE - {"PythonUDF"}


@dataclass(frozen=True)
class _Template:
    """A plan, and its leaves with the numbers of the rows in their place."""

    plan: Any
    leaves: Sequence[tuple[Any, int]]


@dataclass(frozen=True)
class _Step:
    """An operator with state, or cached rows without an operator."""

    template: _Template
    operator: str | None = None
    step: StateStep | None = None


@dataclass(frozen=True)
class ReusableChanges:
    """The steps of a batch, and the receipts of its sinks.

    `columns` is the output of the root of the query. `state` has the operators with state before
    the batch.
    """

    columns: Any
    state: frozenset[str]
    steps: Sequence[_Step]
    receipts: Mapping[str, _Template]

    @classmethod
    def of(
        cls, updating: UpdatingBatch, root: DataFrame, receipts: Mapping[str, DataFrame]
    ) -> ReusableChanges | None:
        """Returns the plans of a batch; None if they depend on it. Reads no data."""
        leaf = analyzed_plan(root)
        if class_name(leaf) != "LogicalRDD" or not depends_on_state_only(updating):
            return None
        rows = {_rdd(leaf): 0}
        steps = []
        for each in updating.steps:
            frame = each if isinstance(each, DataFrame) else each[1].changes
            template = _template(frame, rows)
            if template is None:
                return None
            if isinstance(each, DataFrame):
                steps.append(_Step(template))
            else:
                rows[_rdd(analyzed_plan(each[1].rows))] = len(rows)
                steps.append(_Step(template, *each))
        written = {name: _template(frame, rows) for name, frame in receipts.items()}
        found = {name: template for name, template in written.items() if template is not None}
        if len(found) < len(written):
            return None
        return cls(leaf.output(), frozenset(updating.version.chains), steps, found)

    def apply(self, updating: UpdatingBatch, root: DataFrame) -> dict[str, DataFrame] | None:
        """Returns the receipts of the sinks for another batch, whose steps become those of here.

        Returns None if the batch has other columns, or operators with state.
        """
        leaf = analyzed_plan(root)
        if not depends_on_state_only(updating) or self.state != updating.version.chains.keys():
            return None
        if not leaf.output().equals(self.columns):
            return None
        catalyst, rows = Catalyst(updating.session), [leaf]
        for each in self.steps:
            frame = _frame(catalyst, each.template, rows)
            if each.operator is None or each.step is None:
                updating.cache(frame)
            else:
                rows.append(analyzed_plan(updating.repeat(each.operator, each.step, frame)))
        return {name: _frame(catalyst, t, rows) for name, t in self.receipts.items()}


def depends_on_state_only(updating: UpdatingBatch) -> bool:
    """Returns whether the plans of a batch depend on its operators with state only.

    They also depend on whether it is the first one, and whether rows expire in it.
    """
    return not updating.is_empty and not updating.removes


def _template(frame: DataFrame, rows: Mapping[int, int]) -> _Template | None:
    """Returns the plan of a frame over the RDDs of rows; None if the plan depends on a batch."""
    plan = analyzed_plan(frame)
    leaves, pending = [], [plan]
    while pending:
        operator = pending.pop()
        if class_name(operator) not in _OPERATORS:
            return None
        children = children_of(operator)
        if class_name(operator) == "LogicalRDD":
            if _rdd(operator) not in rows:
                return None
            leaves.append((operator, rows[_rdd(operator)]))
        elif not children or not all(map(_is_reusable, expressions_of(operator))):
            return None
        pending += children
    return _Template(plan, leaves)


def _is_reusable(expression: Any) -> bool:
    """Returns whether the analysis of an expression chooses no values for the batch."""
    pending = [expression]
    while pending:
        part = pending.pop()
        if class_name(part) == _OF_PARTITION:
            continue
        children = children_of(part)
        chooses = not is_deterministic(part) and all(map(is_deterministic, children))
        if chooses or class_name(part) in _SUBQUERIES:
            return False
        pending += children
    return True


def _rdd(leaf: Any) -> int:
    return int(leaf.rdd().id())


def _frame(catalyst: Catalyst, template: _Template, rows: Sequence[Any]) -> DataFrame:
    """Returns the frame of a template over other rows."""
    replaced = [(leaf, _renamed(catalyst, rows[number], leaf)) for leaf, number in template.leaves]
    plan = with_nodes(template.plan, replaced)
    plan.setAnalyzed()
    return catalyst.frame(plan)


def _renamed(catalyst: Catalyst, rows: Any, leaf: Any) -> Any:
    """Returns rows with the attributes of a leaf."""
    if rows.output().equals(leaf.output()):
        return rows
    columns = catalyst.rename(scala_items(rows.output()), scala_items(leaf.output()))
    return catalyst.project(rows, columns)
