"""Checks of the rows of a DataFrame: the input rows on which its expressions fail.

Catalyst's `TryEval` is null where an expression fails. Each operator of a plan whose expressions
may fail is preceded by a check: its expressions are evaluated once, within `TryEval`, as the fields
of a struct. The struct of a row is null if and only if an expression fails. Rows that pass go on to
the operator, which reads the fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import monotonically_increasing_id, struct, when

from penstock.engine.fallible import OPAQUE, find_failures, is_function_call
from penstock.engine.row_errors import row_errors
from penstock.engine.spark_plan import (
    analyzed_plan,
    class_name,
    frame_of,
    scala_items,
    scala_sequence,
)

ROW = "_penstock_row"
"""The column with the number of an input row."""
_VALUES = "_penstock_values"
_CALL = "_penstock_call"
_TRANSPARENT = frozenset({"ResolvedHint", "SubqueryAlias", "View"})
"""Operators that return the rows of their input."""
_EQUALITIES = frozenset({"EqualNullSafe", "EqualTo"})


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

    def errors(self, first: int, last: int) -> Iterator[tuple[int, str]]:
        """Yields the numbers of input rows in a range and the errors of the rows."""
        references = scala_items(self.expression.references().toSeq())
        read = [each for each in references if not each.exprId().equals(self.row.exprId())]
        rows = self._select([self.row, *read]).where(f"{ROW} BETWEEN {first} AND {last}")
        yield from row_errors(rows, self.expression)

    def _select(self, attributes: Sequence[Any]) -> DataFrame:
        java: Any = self.session._jvm
        plans = java.org.apache.spark.sql.catalyst.plans.logical
        return frame_of(plans.Project(scala_sequence(java, attributes), self.failing), self.session)


def number_rows(frame: DataFrame) -> DataFrame:
    """Returns a frame with the column `ROW`, which is last."""
    return frame.withColumn(ROW, monotonically_increasing_id())


def find_checks(frame: DataFrame, input_: DataFrame, numbered: DataFrame) -> list[Check]:
    """Returns the checks of a frame that is computed from `input_`. Reads no data.

    The checks read the rows from `numbered`, the same rows with the column `ROW`. Operators that
    combine rows end the search: operators above them are not checked.
    """
    search = _Search(frame.sparkSession, analyzed_plan(input_), analyzed_plan(numbered))
    java: Any = frame.sparkSession._jvm
    inline = java.org.apache.spark.sql.catalyst.optimizer.InlineCTE(True, False, False)
    search.visit(inline.apply(analyzed_plan(frame)))
    return search.checks


def _innermost_calls(values: Sequence[Any]) -> list[Any]:
    """Returns the calls of user-defined functions whose arguments call no such function."""
    found: list[Any] = []
    for value in values:
        _add_calls(value, found)
    return found


def _add_calls(expression: Any, found: list[Any]) -> bool:
    """Adds the innermost calls in an expression. Returns whether there is one."""
    inner = [_add_calls(child, found) for child in scala_items(expression.children())]
    if any(inner):
        return True
    if not is_function_call(expression):
        return False
    if not any(expression.equals(call) for call in found):
        found.append(expression)
    return True


@dataclass
class _Search:
    """A search for the checks of a plan, from its input upwards."""

    session: SparkSession
    input: Any
    numbered: Any
    checks: list[Check] = field(default_factory=list)

    def __post_init__(self) -> None:
        session: Any = self.session
        self._java = session._jvm
        catalyst = self._java.org.apache.spark.sql.catalyst
        self._expressions, self._plans = catalyst.expressions, catalyst.plans.logical
        self._row = scala_items(self.numbered.output())[-1]

    def visit(self, plan: Any) -> Any | None:
        """Adds the checks of a plan. Returns the plan of the rows that pass, or None at its end."""
        if plan.equals(self.input):
            return self.numbered
        visitor = {
            "Aggregate": self._visit_aggregate,
            "Filter": self._visit_filter,
            "Generate": self._visit_generate,
            "Join": self._visit_join,
            "Project": self._visit_project,
            "Sort": self._visit_sort,
        }.get(class_name(plan))
        if visitor is not None:
            return visitor(plan)
        children = [self.visit(child) for child in scala_items(plan.children())]
        return children[0] if class_name(plan) in _TRANSPARENT else None

    def _visit_project(self, plan: Any) -> Any | None:
        items = scala_items(plan.projectList())
        values = [item.child() if class_name(item) == "Alias" else item for item in items]
        passing, fields = self._check(self.visit(plan.child()), values)
        if passing is None:
            return None
        for index, (value, field_) in enumerate(zip(values, fields, strict=True)):
            if field_ is not value:
                items[index] = items[index].withNewChildren(self._sequence([field_]))
        return self._plans.Project(self._sequence([*items, self._row]), passing)

    def _visit_filter(self, plan: Any) -> Any | None:
        passing, fields = self._check(self.visit(plan.child()), [plan.condition()])
        return None if passing is None else self._plans.Filter(fields[0], passing)

    def _visit_sort(self, plan: Any) -> Any | None:
        order = [item.child() for item in scala_items(plan.order())]
        passing, _ = self._check(self.visit(plan.child()), order)
        return passing

    def _visit_generate(self, plan: Any) -> Any | None:
        generator = plan.generator()
        arguments = scala_items(generator.children())
        passing, fields = self._check(self.visit(plan.child()), arguments)
        if passing is None:
            return None
        return self._plans.Generate(
            generator.withNewChildren(self._sequence(fields)),
            plan.unrequiredChildIndex(),
            plan.outer(),
            plan.qualifier(),
            plan.generatorOutput(),
            passing,
        )

    def _visit_aggregate(self, plan: Any) -> None:
        values = scala_items(plan.groupingExpressions())
        pending = scala_items(plan.aggregateExpressions())
        while pending:
            expression = pending.pop()
            if class_name(expression) != "AggregateExpression":
                pending += scala_items(expression.children())
            elif expression.filter().isEmpty():
                values += scala_items(expression.aggregateFunction().children())
        self._check(self.visit(plan.child()), values)

    def _visit_join(self, plan: Any) -> Any | None:
        sides = [plan.left(), plan.right()]
        reading = [side for side in sides if self._reads(side)]
        passing = [self.visit(side) for side in reading]
        if len(reading) != 1 or passing[0] is None:
            return None
        condition = plan.condition()
        if condition.isDefined() and find_failures(condition.get()):
            passing[0] = self._check_join(plan, reading[0], passing[0])
        if passing[0] is None:
            return None
        joined = [passing[0] if side is reading[0] else side for side in sides]
        return plan.withNewChildren(self._sequence(joined))

    def _check_join(self, plan: Any, side: Any, passing: Any) -> Any | None:
        """Checks the sides of the equalities in a join's condition that read only one input."""
        values = []
        pending = [plan.condition().get()]
        while pending:
            condition = pending.pop()
            if class_name(condition) == "And":
                pending += scala_items(condition.children())
            elif find_failures(condition):
                sides = scala_items(condition.children())
                mine = [each for each in sides if each.references().subsetOf(side.outputSet())]
                others = [each for each in sides if each not in mine]
                if class_name(condition) not in _EQUALITIES or any(map(find_failures, others)):
                    return None
                values += mine
        return self._check(passing, values)[0]

    def _reads(self, plan: Any) -> bool:
        """Returns whether a plan reads the input."""
        return bool(plan.equals(self.input)) or any(map(self._reads, scala_items(plan.children())))

    def _check(self, plan: Any | None, values: list[Any]) -> tuple[Any | None, list[Any]]:
        """Adds a check of expressions over a plan.

        Returns the plan of the rows that pass, and the expressions, replaced by fields of the
        check where they may fail. The plan is None if the expressions cannot be checked.
        """
        plan, values = self._compute_functions(plan, values)
        fallible = [value for value in values if find_failures(value) - OPAQUE]
        if plan is None or not fallible:
            return plan, values
        if any(find_failures(value) & OPAQUE or not value.deterministic() for value in fallible):
            return None, values
        checked = analyzed_plan(
            frame_of(plan, self.session).select("*", self._try(fallible).alias(_VALUES))
        )
        result = scala_items(checked.output())[-1]
        failing = self._plans.Filter(self._expressions.IsNull(result), checked)
        self.checks.append(Check(self.session, failing, self._row, self._finish(checked)))
        passing = self._plans.Filter(self._expressions.IsNotNull(result), checked)
        none = self._java.scala.Option.empty()
        fields = iter(
            self._expressions.GetStructField(result, index, none) for index in range(len(fallible))
        )
        return passing, [next(fields) if value in fallible else value for value in values]

    def _compute_functions(
        self, plan: Any | None, values: list[Any]
    ) -> tuple[Any | None, list[Any]]:
        """Adds columns with the results of user-defined functions to a plan.

        Returns the plan, and the expressions with the columns in place of the calls. The columns
        hold errors as values. The arguments of the calls are checked first.
        """
        while plan is not None and (calls := _innermost_calls(values)):
            counts = [len(scala_items(call.children())) for call in calls]
            arguments = [item for call in calls for item in scala_items(call.children())]
            plan, arguments = self._check(plan, arguments)
            if plan is None:
                return None, values
            columns = self._java.org.apache.spark.sql.classic.ExpressionUtils
            added = []
            for index, (call, count) in enumerate(zip(calls, counts, strict=True)):
                checked, arguments = arguments[:count], arguments[count:]
                computed = Column(columns.column(call.withNewChildren(self._sequence(checked))))
                added.append(computed.alias(f"{_CALL}_{index}"))
            plan = analyzed_plan(frame_of(plan, self.session).select("*", *added))
            results = scala_items(plan.output())[-len(calls) :]
            for call, result in zip(calls, results, strict=True):
                values = [self._replace(value, call, result) for value in values]
        return plan, values

    def _replace(self, expression: Any, call: Any, result: Any) -> Any:
        """Returns an expression with `result` in place of `call`."""
        if expression.equals(call):
            return result
        children = scala_items(expression.children())
        replaced = [self._replace(child, call, result) for child in children]
        if all(new is old for new, old in zip(replaced, children, strict=True)):
            return expression
        return expression.withNewChildren(self._sequence(replaced))

    def _try(self, values: Sequence[Any]) -> Column:
        """Returns the struct of expressions, null if one of them fails.

        The condition, which always holds, keeps Spark from evaluating an expression that occurs
        twice before and outside of `TryEval`.
        """
        columns = self._java.org.apache.spark.sql.classic.ExpressionUtils
        always = Column(columns.column(self._row)) >= 0
        fields = struct(*(when(always, Column(columns.column(value))) for value in values))
        tried: Any = fields
        return Column(columns.column(self._expressions.TryEval(columns.expression(tried._jc))))

    def _finish(self, checked: Any) -> Any:
        """Returns the struct of a check, ready for evaluation outside of Spark's plans."""
        rules = self._java.org.apache.spark.sql.catalyst.optimizer
        finished = rules.ReplaceExpressions.apply(rules.ComputeCurrentTime.apply(checked))
        return scala_items(finished.projectList())[-1].child().child()

    def _sequence(self, items: Sequence[Any]) -> Any:
        return scala_sequence(self._java, items)
