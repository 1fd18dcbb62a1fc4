"""Incremental computation of a query: the changes of its result from the changes of its inputs.

Operators that treat each row by itself are computed on the changes. For an operator that combines
rows, Spark computes the operator twice on the rows of the keys that the batch affects: as they are
after the batch, and as they were before. The rows of the second result are retracted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.functions import lit

from penstock.engine.catalyst.aggregates import divide_in_order
from penstock.engine.catalyst.exact_sums import with_totals, with_window_totals
from penstock.engine.catalyst.java_trees import children_of
from penstock.engine.catalyst.logical_plans import Catalyst
from penstock.engine.catalyst.spark_plan import (
    SESSION_WINDOW,
    analyzed_plan,
    class_name,
    equal_nodes,
    has_metadata,
    scala_items,
)
from penstock.engine.row_checks.result_rows import ResultRows, column_names, replace_part
from penstock.engine.updating.accumulation import Accumulation, functions_of
from penstock.engine.updating.first_rows import first_rows, limited_window
from penstock.engine.updating.operator import AFTER, BEFORE, AffectedFrame, Input, whole_rows
from penstock.engine.updating.protocols import Select, State
from penstock.engine.updating.supported import LIMITS, ROW_BY_ROW, TRANSPARENT, VISITED
from penstock.engine.updating.weighted import Weighted, signed, union, weighted_leaf

_WITH_TABLE = {
    0: ("Cross", "Inner", "LeftAnti", "LeftOuter", "LeftSemi"),
    1: ("Cross", "Inner", "RightOuter"),
}
"""The joins with a static table that compute each row by itself, by the side of the changes."""
_RESULTS = frozenset({"Join", "Window"})
"""Operators that combine rows and that have no expressions over their result."""


class IncrementalPlan:
    """The computation of the changes of a plan.

    `inputs` are the changes of each leaf of the plan: their columns, and `WEIGHT`, by the RDD of
    the leaf. Operators have names by their position, after `prefix`. No batch takes rows of the
    leaves `inserts_only` back. `select` chooses the rows of operators that combine rows.
    """

    def __init__(
        self,
        catalyst: Catalyst,
        inputs: Mapping[int, DataFrame],
        state: State,
        prefix: str,
        inserts_only: frozenset[int] = frozenset(),
        select: Select | None = None,
    ) -> None:
        self._catalyst, self._inputs, self._state = catalyst, inputs, state
        self._inserts_only = inserts_only
        self._prefix, self._count, self._select = prefix, 0, select
        self._last_places: dict[int, int] = {}

    def changes(self, template: Any) -> Weighted:
        """Returns the changes of the result of a plan. Raises PlanError."""
        self._template = template
        return self._changes(template)

    def _changes(self, plan: Any) -> Weighted:
        kind = class_name(plan)
        if kind == "LogicalRDD" and int(plan.rdd().id()) in self._inputs:
            leaf = int(plan.rdd().id())
            inserts_only = leaf in self._inserts_only
            rows = self._inputs[leaf]
            return weighted_leaf(self._catalyst, rows, plan, inserts_only=inserts_only)
        if kind in LIMITS:
            return self._limit(plan)
        if kind == "Filter" and (limited := limited_window(plan)) is not None:
            place, last = limited
            self._last_places[place] = last
        children = [self._changes(child) for child in children_of(plan)]
        if all(child.is_static for child in children):
            return Weighted(plan, None)
        if kind in TRANSPARENT:
            return children[0]
        if kind in ROW_BY_ROW:
            return self._over(plan, children)
        assert kind in VISITED, kind
        if kind == "Aggregate" and self._select is not None:
            return self._selected_groups(plan, children, self._select)
        if kind == "Window" and self._select is not None:
            totals = with_window_totals(self._catalyst, plan)
            if totals is not None:
                return self._selected(plan, totals, [], children, self._select)
        changes: Weighted = getattr(self, f"_{kind.lower()}")(plan, children)
        if kind in _RESULTS and self._select is not None:
            return self._select(ResultRows.of(plan, self._template), changes)
        return changes

    def _selected_groups(self, plan: Any, children: Sequence[Weighted], select: Select) -> Weighted:
        """Returns an aggregate whose columns are computed for the chosen groups only."""
        calls = functions_of(scala_items(plan.aggregateExpressions()))
        groups = divide_in_order(self._catalyst, plan, calls)
        names, totals = column_names(*groups), with_totals(self._catalyst, *groups)
        return self._selected(plan, totals, names, children, select)

    def _selected(
        self,
        plan: Any,
        divided: tuple[Any, list[Any]],
        names: Sequence[str],
        children: Sequence[Weighted],
        select: Select,
    ) -> Weighted:
        """Returns an operator, divided into rows and results, whose results are of chosen rows."""
        rows, results = divided
        names = names or column_names(rows, results)
        compute = self._aggregate if class_name(plan) == "Aggregate" else self._window
        both = self._catalyst.analyzed(self._catalyst.project(rows, results))
        above = replace_part(self._template, plan, both)
        found = ResultRows(both.child(), above, names)
        return self._project(both, [select(found, compute(rows, children))])

    def _inserted(self, changes: Weighted) -> Weighted:
        """Returns changes as they are; the rows of a static table are added by the first batch."""
        if not changes.is_static:
            return changes
        rows = signed(self._catalyst, changes.plan, 1)
        if not self._state.is_empty:
            none = self._catalyst.frame(rows.plan).where(lit(False))
            return Weighted(analyzed_plan(none), rows.weight)
        return rows

    def _expiring(self, changes: Weighted) -> Weighted:
        """Returns the rows of an input as changes that retract the rows that have expired.

        Beside rows that an earlier operator keeps, or rows of a table, the next operator cannot
        remove rows because of their age.
        """
        if not changes.inserts_only:
            return changes
        affected = self._state.affected_rows(f"{self._operator()}-rows", [whole_rows(changes)])
        return affected.changes(0)

    def _over(self, plan: Any, children: Sequence[Weighted]) -> Weighted:
        """Returns an operator that computes each row by itself."""
        changing = [child for child in children if not child.is_static]
        inputs = self._catalyst.sequence([child.plan for child in children])
        inserts_only = all(child.inserts_only for child in changing)
        adds_only = all(child.adds_only for child in changing)
        return Weighted(plan.withNewChildren(inputs), changing[0].weight, inserts_only, adds_only)

    def _project(self, plan: Any, children: Sequence[Weighted]) -> Weighted:
        (child,) = children
        items = [*scala_items(plan.projectList()), child.weight]
        projected = self._catalyst.project(child.plan, items)
        return replace(child, plan=projected)

    def _expand(self, plan: Any, children: Sequence[Weighted]) -> Weighted:
        (child,) = children
        sequence = self._catalyst.sequence
        rows = [
            sequence([*scala_items(row), child.weight]) for row in scala_items(plan.projections())
        ]
        output = sequence([*scala_items(plan.output()), child.weight])
        expanded = self._catalyst.plans.Expand(sequence(rows), output, child.plan)
        return replace(child, plan=expanded)

    def _union(self, plan: Any, children: Sequence[Weighted]) -> Weighted:
        children = [self._inserted(child) for child in children]
        if self._state.expires and len({child.inserts_only for child in children}) > 1:
            children = [self._expiring(child) for child in children]
        inputs = [
            self._catalyst.project(changes.plan, [*scala_items(child.output()), changes.weight])
            for child, changes in zip(children_of(plan), children, strict=True)
        ]
        merged = Weighted(plan.withNewChildren(self._catalyst.sequence(inputs)), None)
        weight = scala_items(merged.plan.output())[-1]
        return Weighted(
            merged.plan, weight,
            inserts_only=all(child.inserts_only for child in children),
            adds_only=all(child.adds_only for child in children),
        )  # fmt: skip

    def _aggregate(self, plan: Any, children: Sequence[Weighted]) -> Weighted:
        groups = scala_items(plan.groupingExpressions())
        key = [expression for expression in groups if not _is_session(expression)]
        accumulation = Accumulation.of(self._catalyst, plan, children[0])
        if accumulation is not None and not self._state.expires and key == groups:
            return self._state.accumulate(self._operator(), accumulation)
        return self._recompute(plan, plan, [Input(children[0], key)])

    def _window(self, plan: Any, children: Sequence[Weighted]) -> Weighted:
        (changes,), key = children, scala_items(plan.partitionSpec())
        places = [int(each.exprId().id()) for each in scala_items(plan.windowExpressions())]
        last = self._last_places.pop(places[0], None)
        if last is not None and changes.inserts_only:
            changes = first_rows(self._catalyst, plan, changes, last, self._state.buckets)
        return self._recompute(plan, plan, [Input(changes, key)])

    def _limit(self, plan: Any) -> Weighted:
        """Returns ORDER BY with LIMIT and OFFSET, which compare all rows with each other."""
        below = _sorted_rows(plan)
        changes = self._changes(below)
        if changes.is_static:
            return Weighted(plan, None)
        return self._recompute(plan, below, [Input(changes, [])])

    def _recompute(self, plan: Any, bottom: Any, inputs: Sequence[Input]) -> Weighted:
        """Returns the result of operators after the batch, without the result before the batch.

        The operators are from `plan` down to `bottom`, whose inputs are replaced; a bottom that is
        not an operator of `plan` itself is replaced as a whole.
        """
        affected = self._state.affected_rows(self._operator(), inputs)
        return self._difference(plan, bottom, affected)

    def _difference(self, plan: Any, bottom: Any, affected: AffectedFrame) -> Weighted:
        after = signed(self._catalyst, self._apply(plan, bottom, affected, AFTER), 1)
        if not affected.had_state:
            return after
        before = signed(self._catalyst, self._apply(plan, bottom, affected, BEFORE), -1)
        return union(self._catalyst, after, before, scala_items(plan.output()))

    def _apply(self, plan: Any, bottom: Any, affected: AffectedFrame, phases: Sequence[int]) -> Any:
        rows = [affected.rows(side, phases) for side in range(len(affected.inputs))]
        if equal_nodes(plan, bottom):
            return plan.withNewChildren(self._catalyst.sequence(rows))
        (child,) = children_of(plan)
        below = (
            rows[0] if equal_nodes(child, bottom) else self._apply(child, bottom, affected, phases)
        )
        return plan.withNewChildren(self._catalyst.sequence([below]))

    def _join(self, plan: Any, children: Sequence[Weighted]) -> Weighted:
        left, right = children
        kind = class_name(plan.joinType())
        if left.is_static or right.is_static:
            side = 1 if left.is_static else 0
            if kind in _WITH_TABLE[side]:
                return self._over(plan, children)
            left, right = self._inserted(left), self._inserted(right)
        keys = self._catalyst.java.org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
        found = keys.unapply(plan)
        left_key = scala_items(found.get()._2()) if found.isDefined() else []
        right_key = scala_items(found.get()._3()) if found.isDefined() else []
        inputs = [Input(left, left_key), Input(right, right_key)]
        is_inner = kind in ("Cross", "Inner")
        affected = self._state.affected_rows(self._operator(), inputs, joins=is_inner)
        if not is_inner:
            return self._difference(plan, plan, affected)
        changed = [affected.changes(side) for side in (0, 1)]
        new_left = self._over(plan, [changed[0], Weighted(affected.rows(1, AFTER), None)])
        # Also without state: a column that can be null is one in each batch, as later states need.
        new_right = self._over(plan, [Weighted(affected.rows(0, BEFORE), None), changed[1]])
        return union(self._catalyst, new_left, new_right, scala_items(plan.output()))

    def _operator(self) -> str:
        self._count += 1
        return f"{self._prefix}-{self._count}"


def _is_session(expression: Any) -> bool:
    """Returns whether a group is a session, whose bounds depend on all rows of the other groups."""
    return class_name(expression) == "AttributeReference" and has_metadata(
        expression, SESSION_WINDOW
    )


def _sorted_rows(plan: Any) -> Any:
    """Returns the plan of the rows that ORDER BY with LIMIT sorts, or that LIMIT alone reads."""
    below = plan
    while class_name(below) in LIMITS:
        below = below.child()
    limited = below
    while class_name(below) == "Project":
        below = below.child()
    return below.child() if class_name(below) == "Sort" else limited
