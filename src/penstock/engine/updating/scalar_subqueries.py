"""Uncorrelated scalar subqueries as joins: each row is joined with the one row of a subquery."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.engine.catalyst.aggregates import divide_as_planned
from penstock.engine.catalyst.function_calls import replace_call
from penstock.engine.catalyst.java_trees import children_of, expressions_of
from penstock.engine.catalyst.logical_plans import Catalyst
from penstock.engine.catalyst.spark_plan import class_name, equal_nodes, map_children, scala_items
from penstock.engine.updating.template import reads, rewritten


@dataclass(frozen=True)
class ScalarSubqueries:
    """The replacement of scalar subqueries that read one of `leaves`, the RDDs of inputs.

    A subquery in an operator without a method here remains.
    """

    catalyst: Catalyst
    leaves: Collection[int]

    def replace(self, plan: Any) -> Any:
        """Returns a plan with joins in place of scalar subqueries."""
        patterns = self.catalyst.java.org.apache.spark.sql.catalyst.trees.TreePattern
        if not plan.containsPattern(patterns.SCALAR_SUBQUERY()):
            return plan
        plan = map_children(plan, self.replace)
        visit = self._visits.get(class_name(plan))
        subqueries = _find(expressions_of(plan))
        found = next((each for each in subqueries if reads(each.plan(), self.leaves)), None)
        return plan if found is None or visit is None else self.replace(visit(plan, found))

    @property
    def _visits(self) -> Mapping[str, Callable[[Any, Any], Any]]:
        return {
            "Aggregate": self._aggregate,
            "Filter": self._filter,
            "Join": self._join,
            "Project": self._project,
            "Sort": self._sort,
        }

    def _project(self, plan: Any, found: Any) -> Any:
        below, value = self._joined(plan.child(), found)
        items = self._replaced(scala_items(plan.projectList()), found, value)
        return self.catalyst.project(below, items)

    def _filter(self, plan: Any, found: Any) -> Any:
        below, value = self._joined(plan.child(), found)
        (condition,) = self._replaced([plan.condition()], found, value)
        return self._with_output(self.catalyst.plans.Filter(condition, below), plan)

    def _sort(self, plan: Any, found: Any) -> Any:
        below, value = self._joined(plan.child(), found)
        order = self.catalyst.sequence(self._replaced(scala_items(plan.order()), found, value))
        is_global = getattr(plan, "global")()
        return self._with_output(
            self.catalyst.plans.Sort(order, is_global, below, plan.hint()), plan
        )

    def _join(self, plan: Any, found: Any) -> Any:
        left, value = self._joined(plan.left(), found)
        (condition,) = self._replaced([plan.condition().get()], found, value)
        some = self.catalyst.java.scala.Some(condition)
        join = self.catalyst.plans.Join(left, plan.right(), plan.joinType(), some, plan.hint())
        return self._with_output(join, plan)

    def _aggregate(self, plan: Any, found: Any) -> Any:
        """Returns an aggregate of joined rows, or a projection of an aggregate.

        An aggregate may use the value in the arguments of its functions only.
        """
        rows, results = divide_as_planned(self.catalyst, plan)
        if any(equal_nodes(found, each) for each in _find(results)):
            return self.catalyst.project(rows, results)
        below, value = self._joined(plan.child(), found)
        items = self._replaced(scala_items(plan.aggregateExpressions()), found, value)
        groups, output = plan.groupingExpressions(), self.catalyst.sequence(items)
        return self.catalyst.plans.Aggregate(groups, output, below, plan.hint())

    def _joined(self, plan: Any, subquery: Any) -> tuple[Any, Any]:
        """Returns a plan joined with the row of a subquery, and the attribute of its value."""
        catalyst = self.catalyst
        none = catalyst.java.scala.Option.empty()
        hint = getattr(catalyst.plans, "JoinHint$").__getattr__("MODULE$").NONE()
        types = catalyst.java.org.apache.spark.sql.catalyst.plans
        single = getattr(types, "LeftSingle$").__getattr__("MODULE$")
        row = rewritten(subquery.plan(), catalyst.session)
        (column,) = scala_items(row.output())
        row, value = catalyst.with_column(row, catalyst.column(column), column.name())
        row = catalyst.project(row, [value])
        return catalyst.plans.Join(plan, row, single, none, hint), value

    def _replaced(self, expressions: Sequence[Any], subquery: Any, value: Any) -> list[Any]:
        return [replace_call(each, subquery, value) for each in expressions]

    def _with_output(self, plan: Any, original: Any) -> Any:
        """Returns a plan with the columns of the original one, without the value."""
        return self.catalyst.project(plan, scala_items(original.output()))


def _find(expressions: Sequence[Any]) -> Iterator[Any]:
    """Yields the scalar subqueries in expressions."""
    pending = list(expressions)
    while pending:
        expression = pending.pop()
        if class_name(expression) == "ScalarSubquery":
            yield expression
        pending += children_of(expression)
