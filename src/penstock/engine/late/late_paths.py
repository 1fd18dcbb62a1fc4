"""Paths of late rows: from the nodes with a watermark to the operators that drop late rows.

Spark drops late rows before a stateful operator: rows whose event time, or the end of whose window,
is at or before the watermark. The operators between the node and the stateful operator may filter,
compute and multiply rows. A path repeats them on chosen rows of the node, with their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame

from penstock.engine.catalyst.java_names import java_names
from penstock.engine.catalyst.java_trees import (
    children_of,
    expressions_of,
    is_deterministic,
    is_stream,
    references_of,
)
from penstock.engine.catalyst.spark_plan import (
    WATERMARK_DELAY,
    analyzed_plan,
    class_name,
    frame_of,
    has_metadata,
    scala_items,
    scala_sequence,
)
from penstock.engine.sources.pushdown import NODE

ROW = "_penstock_row"
"""The column with the number of a row."""
TIME = "_penstock_time"
_STATEFUL = frozenset({"Aggregate", "Deduplicate", "DeduplicateWithinWatermark"})
_TRANSPARENT = frozenset({
    "ArrowEvalPython", "BatchEvalPython", "Filter", "Generate", "RebalancePartitions",
    "Repartition", "RepartitionByExpression", "ResolvedHint", "SubqueryAlias",
})  # fmt: skip
"""Operators whose output has all columns of their input."""
_JOINS = {
    0: ("Cross", "Inner", "LeftAnti", "LeftOuter", "LeftSemi"),
    1: ("Cross", "Inner", "RightOuter"),
}
"""The joins with a table that keep the columns of the stream, by the side of the stream."""


class NotExact(Exception):
    """An exception of a plan whose late rows cannot be found row by row, with the reason."""


@dataclass(frozen=True)
class LatePath:
    """A path from a node to a stateful operator, or to the output of the query.

    `above` are the operators, the last one first, with the index of the input that they read.
    `event_time` is the column by which the operator drops late rows; None if it drops none.
    """

    node: str
    leaf: Any
    above: tuple[tuple[Any, int], ...]
    event_time: Any | None

    def apply(self, rows: DataFrame) -> DataFrame:
        """Returns `ROW` and `TIME`, null without an event time, of the rows at the end of the path.

        `rows` have the columns of the node and `ROW`. An input row may have several output rows.
        """
        session = rows.sparkSession
        java: Any = java_names(session)
        plan, row = _with_columns(rows, self.leaf, java)
        for operator, index in reversed(self.above):
            plan = _replace_input(operator, index, plan, row, java)
        column = java.org.apache.spark.sql.classic.ExpressionUtils.column
        frame = frame_of(plan, session)
        if self.event_time is None:
            return frame.select(Column(column(row)))
        time = Column(column(self.event_time))
        if class_name(self.event_time.dataType()) == "StructType":
            time = time.getField(self.event_time.dataType().fieldNames()[1])
        return frame.select(Column(column(row)), time.alias(TIME))


def find_late_paths(root: DataFrame, nodes: Mapping[str, str]) -> list[LatePath]:
    """Returns the paths of the nodes whose rows may be late. Reads no data. Raises NotExact.

    `nodes` has the nodes that compute their event time, by the IDs of Spark's watermarks.
    """
    session: Any = root.sparkSession
    analyzed = analyzed_plan(root)
    if analyzed.containsPattern(
        java_names(session).org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE()
    ):
        raise NotExact("the SQL depends on the current time")
    optimized = session._jsparkSession.sessionState().optimizer().execute(analyzed)
    paths = list(_Search(nodes).visit(optimized, [optimized], [None]))
    dropped = {path.node for path in paths if path.event_time is not None}
    paths = [path for path in paths if path.node in dropped]
    for path in paths:
        _check(path)
    return paths


@dataclass(frozen=True)
class _Way:
    """A way from an operator down to a node, or to another stateful operator.

    `node` is None for a stream without a watermark. Rows of a stateful operator are never late.
    """

    node: str | None
    leaf: Any
    stateful: bool = False
    above: tuple[tuple[Any, int], ...] = ()


@dataclass(frozen=True)
class _Search:
    """A search for paths from the output of a plan downwards."""

    nodes: Mapping[str, str]

    def visit(
        self, operator: Any, inputs: list[Any], times: list[Any | None]
    ) -> Iterator[LatePath]:
        """Yields the paths to the inputs of an operator, and those below."""
        ways = [(way, time) for plan, time in zip(inputs, times, strict=True)
                for way in self._ways(plan)]  # fmt: skip
        states = [way.leaf for way, _ in ways if way.stateful]
        for way, time in ways:
            if way.stateful:
                continue
            if time is not None and states:
                raise NotExact("a stateful transform reads a stateful transform and a source")
            if time is not None and way.node is None:
                raise NotExact("a stateful transform reads a stream without a watermark")
            if way.node is not None:
                yield LatePath(way.node, way.leaf, way.above, time)
        for state in states:
            children = children_of(state)
            yield from self.visit(state, children, _event_times(state, children))

    def _ways(self, plan: Any, marked: str | None = None) -> Iterator[_Way]:
        """Yields the ways below a plan. `marked` is the ID of the watermark above, if any."""
        kind = class_name(plan)
        if not is_stream(plan):
            return
        if _is_stateful(plan):
            yield _Way(None, plan, stateful=True)
            return
        if kind == "EventTimeWatermark":
            marked = plan.nodeId().toString()
        if kind == "StreamingRelationV2":
            yield _Way(plan.extraOptions().get(NODE) if marked else None, plan)
            return
        if kind == "MapInArrow" and marked is not None and marked in self.nodes:
            yield _Way(self.nodes[marked], plan)
            return
        for index, child in enumerate(children_of(plan)):
            for way in self._ways(child, marked):
                yield replace(way, above=((plan, index), *way.above))


def _is_stateful(plan: Any) -> bool:
    kind = class_name(plan)
    if kind == "Join":
        return all(map(is_stream, children_of(plan)))
    return kind in _STATEFUL or kind.endswith("WithState")


def _event_times(operator: Any, children: list[Any]) -> list[Any | None]:
    """Returns the column by which Spark drops late rows of each input of an operator."""
    kind = class_name(operator)
    if kind == "Aggregate":
        return [_event_time(scala_items(operator.groupingExpressions()))]
    if kind.endswith("WithState"):
        raise NotExact(f"Spark's operator {kind}")
    return [_event_time(scala_items(child.output())) for child in children]


def _event_time(columns: list[Any]) -> Any | None:
    found = {}
    for column in columns:
        if class_name(column) == "AttributeReference":
            if has_metadata(column, WATERMARK_DELAY):
                found[column.exprId().id()] = column
        elif any(has_metadata(each, WATERMARK_DELAY)
                 for each in references_of(column)):  # fmt: skip
            raise NotExact("a group by a part of the event time")
    if len(found) > 1:
        raise NotExact("a stateful transform reads several event-time columns")
    return next(iter(found.values()), None)


def _check(path: LatePath) -> None:
    """Raises NotExact if an operator of a path cannot be repeated."""
    for operator, index in path.above:
        kind = class_name(operator)
        if not all(map(is_deterministic, expressions_of(operator))):
            raise NotExact("an expression is not deterministic")
        if kind == "Join" and class_name(operator.joinType()) in _JOINS[index]:
            continue
        if kind in ("EventTimeWatermark", "Expand", "Project", "Union") or kind in _TRANSPARENT:
            continue
        raise NotExact(f"Spark's operator {kind} is between the watermark and the state")


def _with_columns(rows: DataFrame, leaf: Any, java: Any) -> tuple[Any, Any]:
    """Returns a plan of rows whose columns have the IDs of a leaf, and the column `ROW`."""
    plan = analyzed_plan(rows)
    *columns, row = scala_items(plan.output())
    items = [
        _alias(column, target, java)
        for column, target in zip(columns, scala_items(leaf.output()), strict=True)
    ]
    plans = java.org.apache.spark.sql.catalyst.plans.logical
    return plans.Project(scala_sequence(java, [*items, row]), plan), row


def _alias(column: Any, target: Any, java: Any) -> Any:
    """Returns a column under the name and the ID of another one."""
    if column.exprId().equals(target.exprId()):
        return column
    none, empty = java.scala.Option.empty(), scala_sequence(java, [])
    alias = java.org.apache.spark.sql.catalyst.expressions.Alias
    return alias(column, target.name(), target.exprId(), empty, none, empty)


def _replace_input(operator: Any, index: int, input_: Any, row: Any, java: Any) -> Any:
    """Returns an operator over another input, with the column `row` in its output."""
    kind = class_name(operator)
    plans = java.org.apache.spark.sql.catalyst.plans.logical
    if kind == "EventTimeWatermark":
        return input_
    if kind == "Project":
        items = [*scala_items(operator.projectList()), row]
        return plans.Project(scala_sequence(java, items), input_)
    if kind == "Expand":
        projections = [
            scala_sequence(java, [*scala_items(projection), row])
            for projection in scala_items(operator.projections())
        ]
        output = scala_sequence(java, [*scala_items(operator.output()), row])
        return plans.Expand(scala_sequence(java, projections), output, input_)
    children = children_of(operator)
    if kind == "Union":
        columns = scala_items(children[index].output())
        targets = scala_items(operator.output())
        items = [
            _alias(column, target, java) for column, target in zip(columns, targets, strict=True)
        ]
        return plans.Project(scala_sequence(java, [*items, row]), input_)
    children[index] = input_
    return operator.withNewChildren(scala_sequence(java, children))
