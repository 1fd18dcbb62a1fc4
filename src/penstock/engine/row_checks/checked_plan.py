"""Plans with checks: each operator whose expressions may fail is preceded by a check.

Catalyst's `TryEval` is null where an expression fails. A check evaluates the expressions of an
operator once, within `TryEval`, as the fields of a struct. The struct of a row is null if and only
if an expression fails. Rows that pass reach the operator, which reads the fields.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import takewhile
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import struct, when

from penstock.engine.catalyst.fallible_expressions import OPAQUE, find_failures
from penstock.engine.catalyst.function_calls import innermost_calls, replace_call
from penstock.engine.catalyst.java_names import java_names
from penstock.engine.catalyst.java_trees import children_of, is_deterministic, is_stream, reads_only
from penstock.engine.catalyst.spark_plan import (
    analyzed_plan,
    class_name,
    conjuncts,
    equal_nodes,
    frame_of,
    scala_items,
    scala_sequence,
)
from penstock.engine.row_checks.join_conditions import EQUALITIES, side_values
from penstock.engine.row_checks.map_guards import guard_maps

ROW = "_penstock_row"
"""The column that identifies an input row."""
_VALUES = "_penstock_values"
_CALL = "_penstock_call"
_TRANSPARENT = frozenset({"ResolvedHint", "SubqueryAlias", "View"})
"""Operators that return the rows of their input."""


def without_ctes(frame: DataFrame) -> Any:
    """Returns the analyzed plan of a frame with its common table expressions in place."""
    java: Any = java_names(frame.sparkSession)
    inline = java.org.apache.spark.sql.catalyst.optimizer.InlineCTE(True, False, False)
    return inline.apply(analyzed_plan(frame))


class CheckedPlan(ABC):
    """The addition of checks to a plan, from its input upwards.

    `identified` is the plan of the input rows with the column `ROW`, which is last.
    """

    def __init__(self, session: SparkSession, input_: DataFrame, identified: DataFrame) -> None:
        self.session, self.input = session, analyzed_plan(input_)
        self.identified = analyzed_plan(identified)
        self.row = scala_items(self.identified.output())[-1]
        java: Any = java_names(session)
        self.java = java
        catalyst = self.java.org.apache.spark.sql.catalyst
        self.expressions, self.plans = catalyst.expressions, catalyst.plans.logical

    @abstractmethod
    def divide(self, checked: Any, result: Any) -> Any:
        """Returns the plan of the rows that pass a check. `result` is null for the other rows."""

    def visit(self, plan: Any) -> Any | None:
        """Adds the checks of a plan. Returns the plan of the rows that pass, with `ROW`.

        Returns None where rows are combined or cannot be checked.
        """
        if equal_nodes(plan, self.input):
            return self.identified
        visitor = {
            "Aggregate": self.visit_aggregate,
            "Expand": self._visit_expand,
            "Filter": self._visit_filter,
            "Generate": self._visit_generate,
            "Join": self.visit_join,
            "Project": self._visit_project,
            "Sort": self._visit_sort,
        }.get(class_name(plan))
        if visitor is not None:
            return visitor(plan)
        children = [self.visit(child) for child in children_of(plan)]
        return children[0] if class_name(plan) in _TRANSPARENT else None

    def visit_aggregate(self, plan: Any) -> None:
        """Adds the check of the groups and of the inputs of aggregate functions."""
        self.check(self.visit(plan.child()), aggregated_values(plan, self.expressions))

    def check(self, plan: Any | None, values: list[Any]) -> tuple[Any | None, list[Any]]:
        """Adds a check of expressions over a plan.

        Returns the plan of the rows that pass, and the expressions, replaced by fields of the
        check where they may fail. The plan is None if the expressions cannot be checked.
        """
        if plan is None:
            return None, values
        plan, values = self._compute_functions(plan, values)
        fallible = [value for value in values if find_failures(value) - OPAQUE]
        if plan is None or not fallible:
            return plan, values
        if any(find_failures(value) & OPAQUE or not is_deterministic(value) for value in fallible):
            return None, values
        checked = analyzed_plan(
            frame_of(plan, self.session).select("*", self._try(fallible).alias(_VALUES))
        )
        result = scala_items(checked.output())[-1]
        passing = self.divide(checked, result)
        fields = self._fields(result, fallible)
        return passing, [next(fields) if value in fallible else value for value in values]

    def _compute_functions(self, plan: Any, values: list[Any]) -> tuple[Any | None, list[Any]]:
        """Adds columns with the results of user-defined functions to a plan.

        Returns the plan, and the expressions with the columns in place of the calls. The columns
        hold errors as values. The arguments of the calls are checked first.
        """
        while calls := innermost_calls(values):
            counts = [len(children_of(call)) for call in calls]
            arguments = [item for call in calls for item in children_of(call)]
            plan, arguments = self.check(plan, arguments)
            if plan is None:
                return None, values
            added = []
            for index, (call, count) in enumerate(zip(calls, counts, strict=True)):
                checked, arguments = arguments[:count], arguments[count:]
                computed = self.column(call.withNewChildren(self.sequence(checked)))
                added.append(computed.alias(f"{_CALL}_{index}"))
            plan = analyzed_plan(frame_of(plan, self.session).select("*", *added))
            results = scala_items(plan.output())[-len(calls) :]
            for call, result in zip(calls, results, strict=True):
                values = [replace_call(value, call, result) for value in values]
        return plan, values

    def sequence(self, items: Sequence[Any]) -> Any:
        """Returns Java objects as a Scala sequence."""
        return scala_sequence(self.java, items)

    def column(self, expression: Any) -> Column:
        """Returns an expression as a column."""
        return Column(self.java.org.apache.spark.sql.classic.ExpressionUtils.column(expression))

    def _visit_project(self, plan: Any) -> Any | None:
        items = scala_items(plan.projectList())
        values = [item.child() if class_name(item) == "Alias" else item for item in items]
        passing, fields = self.check(self.visit(plan.child()), values)
        if passing is None:
            return None
        for index, (value, field) in enumerate(zip(values, fields, strict=True)):
            if field is not value:
                items[index] = items[index].withNewChildren(self.sequence([field]))
        return self.plans.Project(self.sequence([*items, self.row]), passing)

    def _visit_filter(self, plan: Any) -> Any | None:
        passing, condition = self.visit(plan.child()), plan.condition()
        parts = conjuncts(condition)
        first = list(takewhile(_cannot_fail, parts))
        if passing is not None and 0 < len(first) < len(parts):
            passing = self.plans.Filter(reduce(self.expressions.And, first), passing)
            condition = reduce(self.expressions.And, parts[len(first) :])
        passing, fields = self.check(passing, [condition])
        return None if passing is None else self.plans.Filter(fields[0], passing)

    def _visit_expand(self, plan: Any) -> Any | None:
        """Adds the checks below the copies of rows, as those of sliding windows."""
        passing = self.visit(plan.child())
        copies = [scala_items(copy) for copy in scala_items(plan.projections())]
        if passing is None or any(find_failures(value) for copy in copies for value in copy):
            return None
        with_row = self.sequence([self.sequence([*copy, self.row]) for copy in copies])
        output = self.sequence([*scala_items(plan.output()), self.row])
        return self.plans.Expand(with_row, output, passing)

    def _visit_sort(self, plan: Any) -> Any | None:
        order = [item.child() for item in scala_items(plan.order())]
        passing, _ = self.check(self.visit(plan.child()), order)
        return passing

    def _visit_generate(self, plan: Any) -> Any | None:
        generator = plan.generator()
        arguments = children_of(generator)
        passing, fields = self.check(self.visit(plan.child()), arguments)
        if passing is None:
            return None
        return self.plans.Generate(
            generator.withNewChildren(self.sequence(fields)),
            plan.unrequiredChildIndex(),
            plan.outer(),
            plan.qualifier(),
            plan.generatorOutput(),
            passing,
        )

    def visit_join(self, plan: Any) -> Any | None:
        """Adds the checks of a join, one side of which reads the input.

        Ends the search at a join with a stream, whose state would have `ROW`: adds only the checks
        of the side that reads the input.
        """
        sides = children_of(plan)
        reading = [side for side in sides if self.reads(side)]
        if any(is_stream(side) for side in sides if side not in reading):
            for side in reading:
                self.visit_side(plan, side)
            return None
        passing = [self.visit(side) for side in reading]
        if len(reading) != 1 or passing[0] is None:
            return None
        condition = plan.condition()
        if condition.isDefined() and find_failures(condition.get()):
            passing[0] = self.check_join(plan, reading[0], passing[0])
        if passing[0] is None:
            return None
        joined = [passing[0] if side is reading[0] else side for side in sides]
        return plan.withNewChildren(self.sequence(joined))

    def visit_side(self, join: Any, side: Any) -> Any | None:
        """Adds the checks of a side of a join of streams, also of the condition over this side."""
        return self.check(self.visit(side), side_values(join, side, self.expressions))[0]

    def check_join(self, plan: Any, side: Any, passing: Any) -> Any | None:
        """Checks the sides of the equalities in a join's condition that read only one input."""
        values = []
        for condition in conjuncts(plan.condition().get()):
            if find_failures(condition):
                sides = children_of(condition)
                mine = [each for each in sides if reads_only(each, side)]
                others = [each for each in sides if each not in mine]
                if class_name(condition) not in EQUALITIES or any(map(find_failures, others)):
                    return None
                values += mine
        return self.check(passing, values)[0]

    def reads(self, plan: Any) -> bool:
        """Returns whether a plan reads the input."""
        return equal_nodes(plan, self.input) or any(map(self.reads, children_of(plan)))

    def _try(self, values: Sequence[Any]) -> Column:
        """Returns the struct of expressions, null if one of them fails.

        The condition, which always holds, keeps Spark from evaluating an expression that occurs
        twice before and outside of `TryEval`.
        """
        columns = self.java.org.apache.spark.sql.classic.ExpressionUtils
        always = self.always()
        guarded = (guard_maps(value, self.column, self.java) for value in values)
        fields = struct(*(when(always, self.column(value)) for value in guarded))
        tried: Any = fields
        return self.column(self.expressions.TryEval(columns.expression(tried._jc)))

    def always(self) -> Column:
        """Returns a condition on `ROW` that always holds and that Spark does not simplify."""
        return self.column(self.row) >= 0

    def _fields(self, result: Any, values: Sequence[Any]) -> Iterator[Any]:
        """Yields the fields of a check, as nullable as the expressions: states depend on it."""
        none = self.java.scala.Option.empty()
        for index, value in enumerate(values):
            field = self.expressions.GetStructField(result, index, none)
            yield field if value.nullable() else self.expressions.KnownNotNull(field)


def _cannot_fail(condition: Any) -> bool:
    """Returns whether a condition can be evaluated without a check, and before other ones."""
    calls = innermost_calls([condition])
    return not calls and is_deterministic(condition) and not find_failures(condition)


def aggregated_values(aggregate: Any, expressions: Any) -> list[Any]:
    """Returns the groups of an aggregation, and the filters and inputs of its functions.

    A filtered input is null for a row that does not pass the filter. `expressions` is Spark's
    package.
    """
    values = scala_items(aggregate.groupingExpressions())
    pending = scala_items(aggregate.aggregateExpressions())
    while pending:
        expression = pending.pop()
        if class_name(expression) != "AggregateExpression":
            pending += children_of(expression)
            continue
        inputs = children_of(expression.aggregateFunction())
        if expression.filter().isDefined():
            condition = expression.filter().get()
            nulls = [expressions.Literal(None, input_.dataType()) for input_ in inputs]
            pairs = zip(inputs, nulls, strict=True)
            inputs = [condition, *(expressions.If(condition, *pair) for pair in pairs)]
        values += inputs
    return values
