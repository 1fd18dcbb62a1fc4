"""Rewrites of joins and groups by window bounds to the window, which keeps its watermark.

Spark completes joins and groups by their columns with a watermark, which the bounds of a window
have lost. The window itself is added to the columns that are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame

from penstock.engine.catalyst.java_trees import children_of, is_stream
from penstock.engine.catalyst.same_type_casts import without_cast
from penstock.engine.catalyst.spark_plan import (
    SESSION_WINDOW,
    WATERMARK_DELAY,
    WINDOWS,
    class_name,
    conjuncts,
    has_metadata,
    rewrite_streams,
    scala_items,
    scala_sequence,
)
from penstock.engine.windows.calendar_windows import is_calendar_window

_MOMENT = 1_000_000_000_000_000
_INNER = ("Cross", "Inner")
_EQUALITIES = ("EqualNullSafe", "EqualTo")


def by_whole_windows(frame: DataFrame) -> DataFrame:
    """Returns a stream whose joins and groups by bounds of windows are also by the windows."""
    return rewrite_streams(
        frame,
        lambda plan, java: _WholeWindows(java).rewrite(plan),
        "AGGREGATE",
        "DISTINCT_LIKE",
        "JOIN",
    )


@dataclass(frozen=True)
class _Bound:
    """The start or the end of a window, as a column of a plan.

    `plan` is the plan with the window among its columns. `width` is in microseconds; None for
    windows of different widths.
    """

    plan: Any
    window: Any
    name: str
    width: int | None


@dataclass(frozen=True)
class _WholeWindows:
    java: Any

    def rewrite(self, plan: Any) -> Any:
        """Returns an operator with windows in its join condition or its groups, or itself."""
        kind = class_name(plan)
        if kind == "Aggregate":
            return self._aggregate(plan)
        if kind == "Distinct":
            columns, none = plan.output(), self.java.scala.Option.empty()
            groups = self._plans.Aggregate(columns, columns, plan.child(), none)
            windows = self._aggregate(groups)
            return plan if windows is groups else windows
        if kind == "Join":
            condition = plan.condition()
            return self._join(plan, conjuncts(condition.get()) if condition.isDefined() else [])
        if kind == "Filter" and class_name(plan.child()) == "Join":
            if class_name(plan.child().joinType()) not in _INNER:
                return plan
            joined = self._join(plan.child(), conjuncts(plan.condition()))
            if joined is not plan.child():
                return plan.withNewChildren(scala_sequence(self.java, [joined]))
        return plan

    def _join(self, join: Any, conditions: Sequence[Any]) -> Any:
        """Returns a join with the equality of the windows whose bounds are equal."""
        if not all(map(is_stream, children_of(join))):
            return join
        if any(map(_compares_event_times, conditions)):
            return join
        pairs = [
            pair for each in conditions if (pair := self._equal_bounds(each, join)) is not None
        ]
        for left, right in pairs:
            names = {
                other.name
                for other, _ in pairs
                if other.window.semanticEquals(left.window)
            }  # fmt: skip
            if len(names) < 2 and (left.width is None or left.width != right.width):
                continue
            equal = self._expressions.EqualTo(left.window, right.window)
            condition = join.condition()
            if condition.isDefined():
                equal = self._expressions.And(condition.get(), equal)
            return self._plans.Join(
                left.plan, right.plan, join.joinType(), self.java.scala.Option.apply(equal),
                join.hint(),
            )  # fmt: skip
        return join

    def _equal_bounds(self, conjunct: Any, join: Any) -> tuple[_Bound, _Bound] | None:
        """Returns the bounds of both sides of a join that a conjunct compares."""
        if class_name(conjunct) not in _EQUALITIES:
            return None
        sides = children_of(conjunct)
        for first, second in (sides, reversed(sides)):
            left, right = self._trace(first, join.left()), self._trace(second, join.right())
            if left is not None and right is not None and left.name == right.name:
                return left, right
        return None

    def _aggregate(self, plan: Any) -> Any:
        """Returns an aggregation by the window whose bounds it groups by."""
        groups = scala_items(plan.groupingExpressions())
        if any(map(_is_event_time, groups)):
            return plan
        bounds = [bound for group in groups if (bound := self._trace(group, plan.child()))]
        for bound in bounds:
            names = {each.name for each in bounds if each.window.semanticEquals(bound.window)}
            if bound.width is not None or len(names) == 2:
                keys = scala_sequence(self.java, [*groups, bound.window])
                return self._plans.Aggregate(
                    keys, plan.aggregateExpressions(), bound.plan, plan.hint()
                )
        return plan

    def _trace(self, expression: Any, plan: Any) -> _Bound | None:
        """Returns the bound of a window that an expression over the columns of a plan is."""
        expression = without_cast(expression)
        if class_name(expression) == "GetStructField":
            window = expression.child()
            if not _is_window(window) or not _has_column(plan, window):
                return None
            name = str(expression.extractFieldName())
            return _Bound(plan, window, name, self._width(window, plan))
        if not _is_column(expression) or not _has_column(plan, expression):
            return None
        kind, children = class_name(plan), children_of(plan)
        if kind in ("Project", "Aggregate"):
            return self._trace_item(expression, plan)
        if kind not in ("Filter", "Join", "SubqueryAlias", "View"):
            return None
        for index, child in enumerate(children):
            bound = self._trace(expression, child)
            if bound is not None:
                children[index] = bound.plan
                above = plan.withNewChildren(scala_sequence(self.java, children))
                return replace(bound, plan=above) if _has_column(above, bound.window) else None
        return None

    def _trace_item(self, column: Any, plan: Any) -> _Bound | None:
        """Returns the bound that a column of a projection or an aggregation is."""
        is_project = class_name(plan) == "Project"
        items = scala_items(plan.projectList() if is_project else plan.aggregateExpressions())
        item = next(each for each in items if each.exprId().equals(column.exprId()))
        bound = self._trace(item.child() if class_name(item) == "Alias" else item, plan.child())
        if bound is None:
            return None
        present = any(each.exprId().equals(bound.window.exprId()) for each in items)
        listed = scala_sequence(self.java, items if present else [*items, bound.window])
        if is_project:
            return replace(bound, plan=self._plans.Project(listed, bound.plan))
        groups = plan.groupingExpressions()
        if not any(group.semanticEquals(bound.window) for group in scala_items(groups)):
            return None
        return replace(
            bound, plan=self._plans.Aggregate(groups, listed, bound.plan, plan.hint())
        )  # fmt: skip

    def _width(self, window: Any, plan: Any) -> int | None:
        """Returns the width of all windows in a column of a plan; None if it is not known."""
        if has_metadata(window, SESSION_WINDOW):
            return None
        definition = _definition(window, plan)
        if definition is None:
            return None
        if is_calendar_window(definition):
            return None
        try:
            bounds = self._at_moment(definition).eval(None)
            return int(bounds.getLong(1) - bounds.getLong(0))
        except Py4JError:
            return None

    def _at_moment(self, expression: Any) -> Any:
        """Returns an expression of a window with a literal as its time."""
        if _is_column(expression):
            return self._expressions.Literal(_MOMENT, expression.dataType())
        children = [self._at_moment(child) for child in children_of(expression)]
        return expression.withNewChildren(scala_sequence(self.java, children))

    @property
    def _expressions(self) -> Any:
        return self.java.org.apache.spark.sql.catalyst.expressions

    @property
    def _plans(self) -> Any:
        return self.java.org.apache.spark.sql.catalyst.plans.logical


def _definition(window: Any, plan: Any) -> Any | None:
    """Returns the expression of the times of rows that a column of windows is; None if unknown."""
    kind = class_name(plan)
    if kind == "Expand":
        for index, column in enumerate(scala_items(plan.output())):
            if column.exprId().equals(window.exprId()) and _is_window(column):
                return plan.projections().apply(0).apply(index)
    if kind in ("Project", "Aggregate"):
        items = plan.projectList() if kind == "Project" else plan.aggregateExpressions()
        for item in scala_items(items):
            if class_name(item) == "Alias" and item.exprId().equals(window.exprId()):
                if _is_column(item.child()):
                    return _definition(item.child(), plan.child())
                return item.child()
    for child in children_of(plan):
        if _has_column(child, window):
            return _definition(window, child)
    return None


def _is_column(expression: Any) -> bool:
    return class_name(expression) == "AttributeReference"


def _is_window(expression: Any) -> bool:
    """Returns whether an expression is a column of windows that a watermark completes."""
    return _is_event_time(expression) and has_metadata(expression, *WINDOWS)


def _is_event_time(expression: Any) -> bool:
    """Returns whether an expression is a column that has a watermark."""
    return _is_column(expression) and has_metadata(expression, WATERMARK_DELAY)


def _compares_event_times(conjunct: Any) -> bool:
    """Returns whether a conjunct is the equality of two columns that have a watermark."""
    if class_name(conjunct) not in _EQUALITIES:
        return False
    return all(map(_is_event_time, children_of(conjunct)))


def _has_column(plan: Any, column: Any) -> bool:
    return bool(plan.outputSet().contains(column))
