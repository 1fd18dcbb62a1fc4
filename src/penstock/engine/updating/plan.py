"""Incremental computation of a query: the changes of its result from the changes of its inputs.

Operators that treat each row by itself are computed on the changes. For an operator that combines
rows, Spark computes the operator twice on the rows of the keys that the batch touches: as they are
after the batch, and as they were before. The rows of the second result are taken back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from pyspark.sql import DataFrame

from penstock.core.errors import PlanError
from penstock.engine.function_calls import replace_call
from penstock.engine.spark_plan import SESSION_WINDOW, class_name, has_metadata, scala_items
from penstock.engine.updating.accumulation import Accumulation
from penstock.engine.updating.catalyst import Catalyst, Weighted, signed, union, weighted_leaf
from penstock.engine.updating.first_rows import first_rows, limited_window
from penstock.engine.updating.operator import AFTER, BEFORE, Input, TouchedRows
from penstock.engine.updating.template import rewritten

_TRANSPARENT = frozenset({
    "RebalancePartitions", "Repartition", "RepartitionByExpression", "ResolvedHint", "Sort",
    "SubqueryAlias", "View", "WindowGroupLimit",
})  # fmt: skip
"""Operators whose output is that of their input, as a multiset."""
_ROW_BY_ROW = frozenset({"ArrowEvalPython", "BatchEvalPython", "Filter", "Generate"})
"""Operators that compute each row by itself, and keep the columns of their input."""
_LIMITS = frozenset({"GlobalLimit", "LocalLimit", "Offset", "Tail"})
_WITH_TABLE = {
    0: ("Cross", "Inner", "LeftAnti", "LeftOuter", "LeftSemi"),
    1: ("Cross", "Inner", "RightOuter"),
}
"""The joins with a static table that compute each row by itself, by the side of the changes."""


class State(Protocol):
    """The state of the operators of a query for one batch."""

    @property
    def accumulates(self) -> bool:
        """Whether aggregates may accumulate: no rows expire."""

    def touch(self, operator: str, inputs: Sequence[Input]) -> tuple[TouchedRows, bool]:
        """Returns the rows of the keys that changes touch, and whether the operator had state."""

    def accumulate(self, operator: str, accumulation: Accumulation) -> tuple[DataFrame, bool]:
        """Returns the groups that changes change, and whether the operator had state."""


class IncrementalPlan:
    """The computation of the changes of a plan.

    `inputs` are the changes of each leaf of the plan: their columns, and `WEIGHT`, by the RDD of
    the leaf. Operators have names by their position, after `prefix`. No batch takes rows of the
    leaves `inserts_only` back.
    """

    def __init__(
        self,
        catalyst: Catalyst,
        inputs: Mapping[int, DataFrame],
        state: State,
        prefix: str,
        inserts_only: frozenset[int] = frozenset(),
    ) -> None:
        self._catalyst, self._inputs, self._state = catalyst, inputs, state
        self._inserts_only = inserts_only
        self._prefix, self._count = prefix, 0
        self._last_places: dict[int, int] = {}

    def changes(self, plan: Any) -> Weighted:
        """Returns the changes of the result of a plan. Raises PlanError."""
        kind = class_name(plan)
        if kind == "LogicalRDD" and int(plan.rdd().id()) in self._inputs:
            leaf = int(plan.rdd().id())
            inserts_only = leaf in self._inserts_only
            rows = self._inputs[leaf]
            return weighted_leaf(self._catalyst, rows, plan, inserts_only=inserts_only)
        if kind in _LIMITS:
            return self._limit(plan)
        if any(self._reads(query) for query in scala_items(plan.subqueries())):
            return self.changes(self._joined(plan))
        if kind == "Filter" and (limited := limited_window(plan)) is not None:
            place, last = limited
            self._last_places[place] = last
        children = [self.changes(child) for child in scala_items(plan.children())]
        if all(child.is_static for child in children):
            return Weighted(plan, None)
        if kind in _TRANSPARENT:
            return children[0]
        if kind in _ROW_BY_ROW:
            return self._over(plan, children)
        visit = {
            "Aggregate": self._aggregate,
            "Expand": self._expand,
            "Join": self._join,
            "Project": self._project,
            "Union": self._union,
            "Window": self._window,
        }.get(kind)
        if visit is None:
            raise _unsupported(kind)
        return visit(plan, children)

    def _reads(self, plan: Any) -> bool:
        """Returns whether a plan reads an input."""
        if class_name(plan) == "LogicalRDD" and int(plan.rdd().id()) in self._inputs:
            return True
        below = [*scala_items(plan.children()), *scala_items(plan.subqueries())]
        return any(map(self._reads, below))

    def _joined(self, plan: Any) -> Any:
        """Returns an operator with joins in place of scalar subqueries, which have one row."""
        catalyst, kind = self._catalyst, class_name(plan)
        found = next(_scalar_subqueries(plan), None)
        if kind not in ("Filter", "Project") or found is None:
            raise _unsupported("A subquery in this place")
        plans = catalyst.java.org.apache.spark.sql.catalyst.plans
        none = catalyst.java.scala.Option.empty()
        hint = getattr(catalyst.plans, "JoinHint$").__getattr__("MODULE$").NONE()
        outer = getattr(plans, "LeftOuter$").__getattr__("MODULE$")
        row = rewritten(found.plan(), catalyst.session)
        joined = catalyst.plans.Join(plan.child(), row, outer, none, hint)
        value = scala_items(row.output())[0]
        if kind == "Project":
            items = [
                replace_call(item, found, value, catalyst.java)
                for item in scala_items(plan.projectList())
            ]
            return catalyst.project(joined, items)
        condition = replace_call(plan.condition(), found, value, catalyst.java)
        output = scala_items(plan.output())
        return catalyst.project(catalyst.plans.Filter(condition, joined), output)

    def _over(self, plan: Any, children: Sequence[Weighted]) -> Weighted:
        """Returns an operator that computes each row by itself."""
        changing = [child for child in children if not child.is_static]
        inputs = self._catalyst.sequence([child.plan for child in children])
        inserts_only = all(child.inserts_only for child in changing)
        return Weighted(plan.withNewChildren(inputs), changing[0].weight, inserts_only)

    def _project(self, plan: Any, children: Sequence[Weighted]) -> Weighted:
        (child,) = children
        items = [*scala_items(plan.projectList()), child.weight]
        projected = self._catalyst.project(child.plan, items)
        return Weighted(projected, child.weight, child.inserts_only)

    def _expand(self, plan: Any, children: Sequence[Weighted]) -> Weighted:
        (child,) = children
        sequence = self._catalyst.sequence
        rows = [
            sequence([*scala_items(row), child.weight]) for row in scala_items(plan.projections())
        ]
        output = sequence([*scala_items(plan.output()), child.weight])
        expanded = self._catalyst.plans.Expand(sequence(rows), output, child.plan)
        return Weighted(expanded, child.weight, child.inserts_only)

    def _union(self, plan: Any, children: Sequence[Weighted]) -> Weighted:
        if any(child.is_static for child in children):
            raise _unsupported("UNION ALL with a static table")
        inputs = [
            self._catalyst.project(changes.plan, [*scala_items(child.output()), changes.weight])
            for child, changes in zip(scala_items(plan.children()), children, strict=True)
        ]
        merged = Weighted(plan.withNewChildren(self._catalyst.sequence(inputs)), None)
        weight = scala_items(merged.plan.output())[-1]
        return Weighted(merged.plan, weight, all(child.inserts_only for child in children))

    def _aggregate(self, plan: Any, children: Sequence[Weighted]) -> Weighted:
        groups = scala_items(plan.groupingExpressions())
        key = [expression for expression in groups if not _is_session(expression)]
        accumulation = Accumulation.of(self._catalyst, plan, children[0])
        if accumulation is not None and self._state.accumulates and key == groups:
            touched, had_state = self._state.accumulate(self._operator(), accumulation)
            return accumulation.changes(touched, had_state=had_state)
        return self._recompute(plan, plan, [Input(children[0], key)])

    def _window(self, plan: Any, children: Sequence[Weighted]) -> Weighted:
        (changes,), key = children, scala_items(plan.partitionSpec())
        places = [int(each.exprId().id()) for each in scala_items(plan.windowExpressions())]
        last = self._last_places.pop(places[0], None)
        if last is not None and changes.inserts_only:
            changes = first_rows(self._catalyst, plan, changes, last)
        return self._recompute(plan, plan, [Input(changes, key)])

    def _limit(self, plan: Any) -> Weighted:
        """Returns ORDER BY with LIMIT and OFFSET, which compare all rows with each other."""
        below = _sorted_rows(plan)
        changes = self.changes(below)
        if changes.is_static:
            return Weighted(plan, None)
        return self._recompute(plan, below, [Input(changes, [])])

    def _recompute(self, plan: Any, bottom: Any, inputs: Sequence[Input]) -> Weighted:
        """Returns the result of operators after the batch, without the result before the batch.

        The operators are from `plan` down to `bottom`, whose inputs are replaced; a bottom that is
        not an operator of `plan` itself is replaced as a whole.
        """
        touched, had_state = self._state.touch(self._operator(), inputs)
        return self._difference(plan, bottom, touched, had_state=had_state)

    def _difference(
        self, plan: Any, bottom: Any, touched: TouchedRows, *, had_state: bool
    ) -> Weighted:
        after = signed(self._catalyst, self._apply(plan, bottom, touched, AFTER), 1)
        if not had_state:
            return after
        before = signed(self._catalyst, self._apply(plan, bottom, touched, BEFORE), -1)
        return union(self._catalyst, after, before, scala_items(plan.output()))

    def _apply(self, plan: Any, bottom: Any, touched: TouchedRows, phases: Sequence[int]) -> Any:
        rows = [touched.rows(side, phases) for side in range(len(touched.inputs))]
        if plan.equals(bottom):
            return plan.withNewChildren(self._catalyst.sequence(rows))
        (child,) = scala_items(plan.children())
        below = rows[0] if child.equals(bottom) else self._apply(child, bottom, touched, phases)
        return plan.withNewChildren(self._catalyst.sequence([below]))

    def _join(self, plan: Any, children: Sequence[Weighted]) -> Weighted:
        left, right = children
        kind = class_name(plan.joinType())
        if left.is_static or right.is_static:
            side = 1 if left.is_static else 0
            if kind in _WITH_TABLE[side]:
                return self._over(plan, children)
            raise _unsupported(f"{kind} join of a static table")
        keys = self._catalyst.java.org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
        found = keys.unapply(plan)
        left_key = scala_items(found.get()._2()) if found.isDefined() else []
        right_key = scala_items(found.get()._3()) if found.isDefined() else []
        inputs = [Input(left, left_key), Input(right, right_key)]
        touched, had_state = self._state.touch(self._operator(), inputs)
        if kind not in ("Cross", "Inner"):
            return self._difference(plan, plan, touched, had_state=had_state)
        changed = [touched.changes(side) for side in (0, 1)]
        new_left = self._over(plan, [changed[0], Weighted(touched.rows(1, AFTER), None)])
        new_right = self._over(plan, [Weighted(touched.rows(0, BEFORE), None), changed[1]])
        return union(self._catalyst, new_left, new_right, scala_items(plan.output()))

    def _operator(self) -> str:
        self._count += 1
        return f"{self._prefix}-{self._count}"


def _is_session(expression: Any) -> bool:
    """Returns whether a group is a session, whose bounds depend on all rows of the other groups."""
    return class_name(expression) == "AttributeReference" and has_metadata(
        expression, SESSION_WINDOW
    )


def _scalar_subqueries(plan: Any) -> Iterator[Any]:
    """Yields the scalar subqueries in the expressions of an operator."""
    pending = scala_items(plan.expressions())
    while pending:
        expression = pending.pop()
        if class_name(expression) == "ScalarSubquery":
            yield expression
        pending += scala_items(expression.children())


def _sorted_rows(plan: Any) -> Any:
    """Returns the plan of the rows that ORDER BY with LIMIT sorts, or that LIMIT alone reads."""
    below = plan
    while class_name(below) in _LIMITS:
        below = below.child()
    limited = below
    while class_name(below) == "Project":
        below = below.child()
    return below.child() if class_name(below) == "Sort" else limited


def _unsupported(name: str) -> PlanError:
    return PlanError(
        f"{name} is not supported in an updating query",
        code="unsupported-updating",
        hint="Compute it in a transform before the updating query.",
    )
