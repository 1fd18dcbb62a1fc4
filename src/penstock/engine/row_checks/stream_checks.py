"""Checks of the rows of a stream: rows on which a transform fails leave the stream.

The rows of a batch whose root is a stateful operator cannot be searched after a failure: the
failing operators are upstream of the state. Their checks are part of the stream instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import rand, struct, when
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import StructType

from penstock.engine.catalyst.java_trees import children_of, is_stream
from penstock.engine.catalyst.logical_plans import Catalyst
from penstock.engine.catalyst.spark_plan import (
    analyzed_plan,
    class_name,
    frame_of,
    replace_expressions,
    scala_items,
)
from penstock.engine.row_checks.checked_plan import (
    ROW,
    CheckedPlan,
    aggregated_values,
    without_ctes,
)
from penstock.engine.row_checks.failing_rows import NUMBER, FailingRows, FailingRowsWriter
from penstock.engine.row_checks.join_conditions import is_stream_join
from penstock.engine.row_checks.result_rows import ResultRows, divide, find_parts
from penstock.engine.row_checks.stream_joins import LEAF, JoinedPlan
from penstock.engine.tasks.dead_letter_writer import Spool, Stage
from penstock.plan.node import Node


def is_checkable(node: Node, streams: frozenset[str], spool: Spool) -> bool:
    """Returns whether rows on which a node fails can leave its stream: its input, or joined rows.

    `streams` are the nodes that are streams. With `on_error: fail` the first failure is an error.
    """
    if node.kind == "source":
        computes = node.computes_event_time
    else:
        computes = node.frame_transform is not None and any(n in streams for n in node.inputs)
    return computes and spool.keeps_bad_records


def check_joins(
    node: Node,
    frame: DataFrame,
    inputs: Sequence[DataFrame],
    spool: Spool,
    results: dict[str, ResultRows],
) -> DataFrame:
    """Returns the output of a node of several streams, without the rows on which it fails.

    They are rows of the inputs, joined rows and rows of groups. Adds those that may fail to
    `results`, as `check_node` does.
    """
    directory = spool.directory if spool.reports else None
    try:
        session = frame.sparkSession
        joined = JoinedPlan.of(frame, inputs)
        failing = FailingRows(node.name, StructType(), directory)
        above = _check_results(joined.plan, session, failing, results, _combines_rows)
        if above is joined.plan:
            return frame
        return frame_of(joined.over_inputs(above, Catalyst(session)), session)
    except (AnalysisException, Py4JError):
        return frame


def stage_of(node: Node) -> Stage:
    """Returns the stage of a failure of SQL in a node. A source computes event times."""
    return "output" if node.kind == "source" else "transform"


def check_node(
    node: Node, frame: DataFrame, input_: DataFrame, spool: Spool, results: dict[str, ResultRows]
) -> DataFrame:
    """Returns the output of a node, computed from `input_`, without the rows on which it fails.

    Adds the rows of its aggregations that may fail to `results`, by the names of `FailingRows`.
    """
    directory = spool.directory if spool.reports else None
    return check_stream(frame, input_, FailingRows(node.name, input_.schema, directory), results)


def check_stream(
    frame: DataFrame,
    input_: DataFrame,
    failing: FailingRows,
    results: dict[str, ResultRows] | None = None,
) -> DataFrame:
    """Returns a stream that is computed from `input_`, without the rows on which it fails.

    Tasks write the input rows on which an expression fails to files (see `FailingRows`), and the
    rows of groups on which an expression over aggregates fails. Returns `frame` itself if nothing
    can fail or be checked: a failure is then an error of the query. The output and the state of its
    operators remain the same.
    """
    try:
        session = frame.sparkSession
        identified = input_.select("*", struct("*", rand().alias(NUMBER)).alias(ROW))
        checked = _CheckedStream(session, input_, identified, failing)
        plan = without_ctes(frame)
        above = checked.rewrite(plan)
        plan_of_rows = above if checked.count else plan
        above = _check_results(plan_of_rows, session, failing, results, _is_aggregation)
        return frame if above is plan else frame_of(above, session)
    except (AnalysisException, Py4JError):
        return frame


def _check_results(
    plan: Any,
    session: SparkSession,
    failing: FailingRows,
    results: dict[str, ResultRows] | None,
    is_checked: Callable[[Any], bool],
) -> Any:
    """Returns the plan of a stream with checks of the rows of some of its operators; or itself."""
    catalyst = Catalyst(session)
    for position in range(len(find_parts(plan, is_checked))):
        part = find_parts(plan, is_checked)[position]
        if not is_stream(part):
            continue
        if _is_aggregation(part):
            found = divide(plan, part, session)
        else:
            found = ResultRows.of(part, plan, "output" if is_stream_join(part) else "transform")
        rows = frame_of(found.rows, session)
        columns = found.columns(catalyst)
        failing = failing.of_result(position, rows.select(*columns).schema)
        identified = rows.select("*", struct(*columns, rand().alias(NUMBER)).alias(ROW))
        checked = _CheckedStream(session, rows, identified, failing)
        checked.input = found.rows
        above = checked.rewrite(found.above)
        if checked.count:
            plan = above
            if results is not None:
                results[failing.name] = found
    return plan


def _is_aggregation(part: Any) -> bool:
    return class_name(part) == "Aggregate"


def _combines_rows(part: Any) -> bool:
    """Returns whether an operator is a leaf of a `JoinedPlan` or combines rows."""
    return class_name(part) == LEAF or _is_aggregation(part) or is_stream_join(part)


class _CheckedStream(CheckedPlan):
    """The plan of a stream with checks. `ROW` is the whole input row; `count` counts the checks."""

    def __init__(
        self, session: SparkSession, input_: DataFrame, identified: DataFrame, failing: FailingRows
    ) -> None:
        super().__init__(session, input_, identified)
        self.failing, self.count = failing, 0

    def rewrite(self, plan: Any) -> Any:
        """Returns a plan of the same output with checks."""
        before = self.count
        passing = self.visit(plan)
        if passing is not None:
            return self.plans.Project(plan.output(), passing) if self.count > before else plan
        self.count = before
        if class_name(plan) == "Aggregate":
            return self._rewrite_aggregate(plan)
        if is_stream_join(plan):
            children = [self._rewrite_side(plan, side) for side in children_of(plan)]
        else:
            children = [self.rewrite(child) for child in children_of(plan)]
        return plan.withNewChildren(self.sequence(children)) if children else plan

    def _rewrite_side(self, join: Any, side: Any) -> Any:
        """Returns a side of a join of streams with checks, also of the condition over this side."""
        before = self.count
        passing = self.visit_side(join, side)
        if passing is not None and self.count > before:
            return self.plans.Project(side.output(), passing)
        self.count = before
        return side if passing is not None else self.rewrite(side)

    def visit_aggregate(self, plan: Any) -> None:
        """Ends the search: `rewrite` adds the check."""

    def divide(self, checked: Any, result: Any) -> Any:
        make_udf: Any = arrow_udf
        report = make_udf(_passing(self.failing.of_check(self.count)), "boolean")
        report = report.asNondeterministic()
        self.count += 1
        failing = when(self.column(result).isNull(), self.column(self.row))
        return analyzed_plan(frame_of(checked, self.session).where(report(failing)))

    def always(self) -> Column:
        return self.column(self.row).getField(NUMBER) >= 0

    def _rewrite_aggregate(self, plan: Any) -> Any:
        """Returns an aggregation whose groups and inputs are computed before."""
        before = self.count
        values = aggregated_values(plan, self.expressions)
        passing, fields = self.check(self.visit(plan.child()), values)
        if self.count == before:
            return plan
        if passing is None:
            return plan.withNewChildren(self.sequence([self.rewrite(plan.child())]))
        replaced = [pair for pair in zip(values, fields, strict=True) if pair[0] is not pair[1]]
        replaced_in = partial(replace_expressions, replaced=replaced, within_aggregates=True)
        groups, results = (
            self.sequence(list(map(replaced_in, scala_items(items))))
            for items in (plan.groupingExpressions(), plan.aggregateExpressions())
        )
        return self.plans.Aggregate(groups, results, passing, plan.hint())


def _passing(writer: FailingRowsWriter) -> Callable[[Iterator[pa.Array]], Iterator[pa.Array]]:
    """Returns the function of a writer with the type hints by which Spark selects its kind."""

    def passing(columns: Iterator[pa.Array]) -> Iterator[pa.Array]:
        return writer(columns)

    return passing
