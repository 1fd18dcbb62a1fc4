"""Pushdown: the columns and filters of each source, from Spark's optimized plan."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from pyspark.sql import DataFrame

from penstock.engine.catalyst.java_names import java_names
from penstock.engine.catalyst.java_trees import children_of, references_of
from penstock.engine.catalyst.spark_plan import analyzed_plan, scala_items
from penstock.plan.model import Query
from penstock.plan.node import Node
from penstock.plan.pushdown import EVERYTHING, Pushdown
from penstock.sdk import Conjunct

NODE = "node"
"""The option of a reader that names its node."""

_MAX_VALUES = 200
_FLOATS = ("float", "double")
_COMPARISONS = {
    "EqualTo": "=", "LessThan": "<", "LessThanOrEqual": "<=", "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}  # fmt: skip
_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def find_pushdowns(frames: Iterable[DataFrame]) -> dict[str, Pushdown]:
    """Returns the combined pushdown of `frames` for each source node. Reads no data.

    Only filters and projections directly above a scan in the optimized plan count: Spark drops all
    other rows and columns. Filters of a plan that depends on the current time do not count, because
    the optimizer replaces the current time with the time of this call.
    """
    pushdowns: dict[str, Pushdown] = {}
    for frame in frames:
        analyzed = analyzed_plan(frame)
        session: Any = frame.sparkSession
        patterns = java_names(session).org.apache.spark.sql.catalyst.trees.TreePattern
        timeless = not analyzed.containsPattern(patterns.CURRENT_LIKE())
        optimized = session._jsparkSession.sessionState().optimizer().execute(analyzed)
        for name, scan in _scan_pushdowns(optimized):
            pushdown = scan if timeless else Pushdown(scan.columns)
            pushdowns[name] = pushdowns[name].union(pushdown) if name in pushdowns else pushdown
    return {name: pushdown.simplify() for name, pushdown in pushdowns.items()}


def without_lost_changes(
    source: Node, query: Query, pushdown: Pushdown, *, has_clock: bool
) -> Pushdown:
    """Returns the pushdown of a source without conditions that rows in use may not meet.

    A change that does not meet a condition retracts the row before. The state of an updating
    query has all columns of its changes.
    """
    if source.operation is not None and query.updating:
        return EVERYTHING
    if has_clock or (source.operation is not None and not source.drops_changes):
        return Pushdown(pushdown.columns)
    return pushdown


class _Operators(NamedTuple):
    """The operators directly above a node: filters, and the columns in use (None: all)."""

    filters: tuple[Any, ...] = ()
    used: frozenset[int] | None = None


_NO_OPERATORS = _Operators()


@dataclass(frozen=True)
class _Column:
    name: str
    type: str


def _scan_pushdowns(node: Any, above: _Operators = _NO_OPERATORS) -> Iterator[tuple[str, Pushdown]]:
    """Yields the pushdown of every streaming scan in a logical plan, including subqueries."""
    kind = node.nodeName()
    if kind == "StreamingRelationV2":
        yield node.extraOptions().get(NODE), _pushdown(node, above)
    if kind == "Project":
        above = _Operators((), _references(node))
    elif kind == "Filter":
        used = None if above.used is None else above.used | _references(node)
        above = _Operators((*above.filters, node.condition()), used)
    else:
        above = _NO_OPERATORS
    for child in children_of(node):
        yield from _scan_pushdowns(child, above)
    for subquery in scala_items(node.subqueries()):
        yield from _scan_pushdowns(subquery)


def _pushdown(scan: Any, above: _Operators) -> Pushdown:
    columns = {
        attribute.exprId().id(): _Column(attribute.name(), attribute.dataType().json())
        for attribute in scala_items(scan.output())
    }
    used = None
    if above.used is not None:
        used = frozenset(column.name for id_, column in columns.items() if id_ in above.used)
    conjuncts = tuple(
        conjunct for filter_ in above.filters for conjunct in _conjuncts(filter_, columns)
    )
    return Pushdown(None if used is None or len(used) == len(columns) else used, conjuncts)


def _conjuncts(condition: Any, columns: Mapping[int, _Column]) -> Iterator[Conjunct]:
    """Yields the conjuncts of a condition that compare one column with literals."""
    kind, parts = condition.nodeName(), list(children_of(condition))
    if kind == "And":
        for part in parts:
            yield from _conjuncts(part, columns)
    elif kind == "Not":
        (inner,) = parts
        if inner.nodeName() == "EqualTo":
            for equality in _conjuncts(inner, columns):
                yield Conjunct(equality.column, "!=", equality.value)
        elif column := _column(inner, columns):
            yield Conjunct(column.name, "=", False)
    elif column := _column(condition, columns):
        yield Conjunct(column.name, "=", True)
    elif parts and (column := _column(parts[0], columns)):
        yield from _column_conjuncts(column, condition, parts)
    elif kind in _COMPARISONS and (column := _column(parts[1], columns)):
        yield from _comparison(column, _MIRRORED[_COMPARISONS[kind]], parts[0])


def _column_conjuncts(column: _Column, condition: Any, parts: list[Any]) -> Iterator[Conjunct]:
    kind = condition.nodeName()
    if kind in ("IsNull", "IsNotNull"):
        yield Conjunct(column.name, "null" if kind == "IsNull" else "notnull")
    elif kind in _COMPARISONS:
        yield from _comparison(column, _COMPARISONS[kind], parts[1])
    elif kind in ("In", "InSet") and column.type.strip('"') not in _FLOATS:
        values = _values(column, condition, parts)
        if values is not None and None not in values:
            yield Conjunct(column.name, "in", tuple(values))


def _comparison(column: _Column, op: str, other: Any) -> Iterator[Conjunct]:
    value = _literal(column, other)
    if value is not None and (op == "=" or not isinstance(value, bool)):
        yield Conjunct(column.name, op, value)


def _values(column: _Column, condition: Any, parts: list[Any]) -> list[Any] | None:
    """Returns the literals of an IN; None for a literal of another type."""
    if condition.nodeName() == "In":
        if len(parts) - 1 > _MAX_VALUES:
            return None
        return [_literal(column, part) for part in parts[1:]]
    if condition.hset().size() > _MAX_VALUES:
        return None
    return [_value(column.type, value) for value in scala_items(condition.hset().toSeq())]


def _column(expression: Any, columns: Mapping[int, _Column]) -> _Column | None:
    if expression.nodeName() != "AttributeReference":
        return None
    return columns.get(expression.exprId().id())


def _literal(column: _Column, expression: Any) -> Any:
    """Returns the value of a literal of exactly the column's type, or None."""
    if expression.nodeName() != "Literal" or expression.dataType().json() != column.type:
        return None
    return _value(column.type, expression.value())


def _value(type_: str, value: Any) -> Any:
    """Converts a value of Spark to Python; None where the two may differ."""
    kind = type_.strip('"')
    if value is None:
        return None
    if kind in ("boolean", "byte", "short", "integer", "long"):
        return value
    if kind in _FLOATS:
        return None if math.isnan(value) else float(value)
    if kind == "string":
        text = value.toString()
        return None if "\ufffd" in text else text
    if kind.startswith("decimal("):
        return value.toJavaBigDecimal()
    try:
        if kind == "date":
            return date(1970, 1, 1) + timedelta(days=value)
        if kind in ("timestamp", "timestamp_ntz"):
            zone = UTC if kind == "timestamp" else None
            return datetime(1970, 1, 1, tzinfo=zone) + timedelta(microseconds=value)
    except OverflowError:
        return None
    return None


def _references(node: Any) -> frozenset[int]:
    return frozenset(column.exprId().id() for column in references_of(node))
