"""What queries need of their sources, as Spark's optimizer sees it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from pyspark.sql import DataFrame

from penstock.plan.hint import Hint
from penstock.sdk import Conjunct

NODE = "node"
"""The option of a reader that names its node."""

_MOST_VALUES = 200
_FLOATS = ("float", "double")
_COMPARISONS = {
    "EqualTo": "=", "LessThan": "<", "LessThanOrEqual": "<=", "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}  # fmt: skip
_TURNED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def hints(frames: Iterable[DataFrame]) -> dict[str, Hint]:
    """For each source by its node's name, what `frames` need of it together; computes nothing.

    Only what Spark itself puts directly above a scan counts, so each row and column that is left
    out is one that Spark would drop there. Of a plan that depends on the time of day no filter
    does: Spark sees the time of this call in it.
    """
    found: dict[str, Hint] = {}
    for frame in frames:
        analyzed = frame._jdf.queryExecution().analyzed()
        session: Any = frame.sparkSession
        patterns = session._jvm.org.apache.spark.sql.catalyst.trees.TreePattern
        timeless = not analyzed.containsPattern(patterns.CURRENT_LIKE())
        optimized = session._jsparkSession.sessionState().optimizer().execute(analyzed)
        for name, hint in _needs(optimized):
            needed = hint if timeless else Hint(hint.columns)
            found[name] = found[name].shared(needed) if name in found else needed
    return {name: hint.terse() for name, hint in found.items()}


class _Above(NamedTuple):
    """What stands directly above a node: filters, and the columns that go further (None: all)."""

    filters: tuple[Any, ...] = ()
    used: frozenset[int] | None = None


_NOTHING = _Above()


@dataclass(frozen=True)
class _Column:
    name: str
    type: str


def _needs(node: Any, above: _Above = _NOTHING) -> Iterator[tuple[str, Hint]]:
    """The needs of every scan of a stream in a logical plan, those in subqueries included."""
    kind = node.nodeName()
    if kind == "StreamingRelationV2":
        yield node.extraOptions().get(NODE), _hint(node, above)
    if kind == "Project":
        above = _Above((), _references(node))
    elif kind == "Filter":
        used = None if above.used is None else above.used | _references(node)
        above = _Above((*above.filters, node.condition()), used)
    else:
        above = _NOTHING
    for child in _each(node.children()):
        yield from _needs(child, above)
    for subquery in _each(node.subqueries()):
        yield from _needs(subquery)


def _hint(scan: Any, above: _Above) -> Hint:
    columns = {
        each.exprId().id(): _Column(each.name(), each.dataType().json())
        for each in _each(scan.output())
    }
    used = None
    if above.used is not None:
        used = frozenset(column.name for id_, column in columns.items() if id_ in above.used)
    conjuncts = (each for condition in above.filters for each in _conjuncts(condition, columns))
    return Hint(None if used is None or len(used) == len(columns) else used, tuple(conjuncts))


def _conjuncts(condition: Any, columns: Mapping[int, _Column]) -> Iterator[Conjunct]:
    """The simple ones among the conjuncts of a condition."""
    kind, parts = condition.nodeName(), list(_each(condition.children()))
    if kind == "And":
        for part in parts:
            yield from _conjuncts(part, columns)
    elif kind == "Not":
        (inner,) = parts
        if inner.nodeName() == "EqualTo":
            for found in _conjuncts(inner, columns):
                yield Conjunct(found.column, "!=", found.value)
        elif column := _column(inner, columns):
            yield Conjunct(column.name, "=", False)
    elif column := _column(condition, columns):
        yield Conjunct(column.name, "=", True)
    elif parts and (column := _column(parts[0], columns)):
        yield from _about(column, condition, parts)
    elif kind in _COMPARISONS and (column := _column(parts[1], columns)):
        yield from _comparison(column, _TURNED[_COMPARISONS[kind]], parts[0])


def _about(column: _Column, condition: Any, parts: list[Any]) -> Iterator[Conjunct]:
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
    """The literals of an IN, None for those that are none of the column's type."""
    if condition.nodeName() == "In":
        if len(parts) - 1 > _MOST_VALUES:
            return None
        return [_literal(column, part) for part in parts[1:]]
    if condition.hset().size() > _MOST_VALUES:
        return None
    return [_value(column.type, each) for each in _each(condition.hset().toSeq())]


def _column(expression: Any, columns: Mapping[int, _Column]) -> _Column | None:
    if expression.nodeName() != "AttributeReference":
        return None
    return columns.get(expression.exprId().id())


def _literal(column: _Column, expression: Any) -> Any:
    """The value of a literal of exactly the column's type; None for anything else."""
    if expression.nodeName() != "Literal" or expression.dataType().json() != column.type:
        return None
    return _value(column.type, expression.value())


def _value(type_: str, value: Any) -> Any:
    """A value of Spark's as Python's; None where the two may not be the same."""
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
    return frozenset(each.exprId().id() for each in _each(node.references().toSeq()))


def _each(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(index) for index in range(sequence.size()))
