"""Rows of groups: the results of an aggregation, on which expressions of the same SQL may fail.

`SELECT k, CAST(max(s) AS INT) FROM a GROUP BY k` fails on a group, not on a row of `a`. The row of
a group has the columns of `GROUP BY` and the results of the aggregate functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession

from penstock.engine.catalyst.aggregates import divide_as_planned
from penstock.engine.catalyst.exact_sums import (
    has_total,
    with_marked_totals,
    with_totals,
    with_window_totals,
)
from penstock.engine.catalyst.java_trees import children_of, is_stream
from penstock.engine.catalyst.logical_plans import Catalyst
from penstock.engine.catalyst.messages import without_column_ids
from penstock.engine.catalyst.spark_plan import (
    analyzed_plan,
    class_name,
    equal_nodes,
    frame_of,
    map_children,
    scala_items,
)
from penstock.engine.row_checks.row_checks import Check, CheckSearch
from penstock.engine.tasks.dead_letter_writer import Stage


@dataclass(frozen=True)
class ResultRows:
    """The rows of a part of a plan. `rows` is the part, and `above` the whole plan.

    `stage` is that of the dead letters of these rows.
    """

    rows: Any
    above: Any
    names: Sequence[str]
    stage: Stage = "output"

    @classmethod
    def of(cls, rows: Any, above: Any, stage: Stage = "output") -> ResultRows:
        """Returns the rows with unique names of columns."""
        return cls(rows, above, column_names(rows), stage)

    @property
    def has_totals(self) -> bool:
        """Whether the rows have exact totals in place of sums."""
        return any(map(has_total, scala_items(self.rows.output())))

    def frame(self, session: SparkSession) -> DataFrame:
        """Returns the rows."""
        return frame_of(self.rows, session).select(*self.columns(Catalyst(session)))

    def columns(self, catalyst: Catalyst) -> list[Column]:
        """Returns the columns of the rows by their names."""
        attributes = scala_items(self.rows.output())
        return [
            catalyst.column(each).alias(name)
            for each, name in zip(attributes, self.names, strict=True)
        ]

    def checks(self, numbered: DataFrame) -> list[Check]:
        """Returns the checks of the rows. Reads no data.

        The checks read the rows from `numbered`: their columns, and `ROW`.
        """
        search = ResultSearch(self, numbered)
        search.visit(self.above)
        return search.checks

    def plan_over(self, rows: DataFrame) -> Any:
        """Returns the whole plan with other rows of the same columns in place of the part."""
        catalyst = Catalyst(rows.sparkSession)
        plan = analyzed_plan(rows)
        named = catalyst.rename(scala_items(plan.output()), scala_items(self.rows.output()))
        other = catalyst.project(plan, named)
        return replace_part(self.above, self.rows, other)


class ResultSearch(CheckSearch):
    """A search for the checks of rows of a plan, up to the next operator that combines rows."""

    def __init__(self, rows: ResultRows, numbered: DataFrame) -> None:
        session = numbered.sparkSession
        super().__init__(session, numbered, numbered)
        self.input = rows.rows
        *columns, row = scala_items(self.identified.output())
        catalyst = Catalyst(session)
        targets = scala_items(rows.rows.output())
        named = catalyst.rename(columns[: len(targets)], targets)
        self.identified = catalyst.project(self.identified, [*named, row])


def column_names(rows: Any, results: Sequence[Any] = ()) -> list[str]:
    """Returns unique names of the columns of rows; those of `results` if they are columns."""
    renamed = {
        int(each.child().exprId().id()): str(each.name())
        for each in results
        if class_name(each) == "Alias" and class_name(each.child()) == "AttributeReference"
    }
    names: list[str] = []
    for column in scala_items(rows.output()):
        name = renamed.get(int(column.exprId().id())) or without_column_ids(str(column.name()))
        same = sum(each.casefold() == name.casefold() for each in names)
        names.append(f"{name} ({len(names) + 1})" if same else name)
    return names


def aggregations(plan: Any) -> list[Any]:
    """Returns the aggregations of a plan, from below."""
    return find_parts(plan, lambda part: class_name(part) == "Aggregate")


def combinations(plan: Any) -> list[Any]:
    """Returns the aggregations and the window functions of a plan, from below."""
    return find_parts(plan, lambda part: class_name(part) in ("Aggregate", "Window"))


def find_parts(plan: Any, is_found: Callable[[Any], bool]) -> list[Any]:
    """Returns the parts of a plan that fulfil a condition, from below."""
    found = [each for child in children_of(plan) for each in find_parts(child, is_found)]
    return [*found, plan] if is_found(plan) else found


def divide_window(plan: Any, window: Any, session: SparkSession) -> ResultRows | None:
    """Returns the rows of window functions of a plan, with exact totals in place of sums.

    Returns None without sums.
    """
    catalyst = Catalyst(session)
    totals = with_window_totals(catalyst, window)
    if totals is None:
        return None
    divided = catalyst.analyzed(catalyst.project(*totals))
    above = replace_part(plan, window, divided)
    return ResultRows(divided.child(), above, column_names(*totals))


def divide(plan: Any, aggregate: Any, session: SparkSession) -> ResultRows:
    """Returns the rows of an aggregation of a plan, divided from the expressions over the rows.

    The rows have exact totals in place of sums.
    """
    catalyst = Catalyst(session)
    groups = divide_as_planned(catalyst, aggregate)
    divide_sums = with_marked_totals if is_stream(aggregate) else with_totals
    divided = catalyst.analyzed(catalyst.project(*divide_sums(catalyst, *groups)))
    above = replace_part(plan, aggregate, divided)
    return ResultRows(divided.child(), above, column_names(*groups))


def replace_part(plan: Any, part: Any, other: Any) -> Any:
    """Returns a plan with another plan in place of a part."""
    if equal_nodes(plan, part):
        return other
    return map_children(plan, lambda child: replace_part(child, part, other))
