"""Rows without a time, which belong to no window of the calendar.

Spark drops such rows below each operator with `window` or `session_window`. A window of the
calendar is a struct of expressions, in the form that `sql.dialect.calendar_windows` writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from pyspark.sql import DataFrame

from penstock.engine.catalyst.java_trees import children_of, expressions_of_class
from penstock.engine.catalyst.spark_plan import (
    class_name,
    rewrite_operators,
    scala_items,
    scala_sequence,
)

_DAY = 86_400_000_000
_LENGTHS = {
    ("TimestampAddInterval", "day"): _DAY,
    ("TimestampAddInterval", "week"): 7 * _DAY,
    ("TimestampAddYMInterval", "month"): 1,
    ("TimestampAddYMInterval", "quarter"): 3,
    ("TimestampAddYMInterval", "year"): 12,
}
"""The lengths of windows by unit, in microseconds or months, and the expression that adds them."""


def without_untimed_rows(frame: DataFrame) -> DataFrame:
    """Returns a frame without rows that have no time below operators with calendar windows."""
    return rewrite_operators(frame, _rewrite, "CREATE_NAMED_STRUCT", subqueries=True)


def _rewrite(plan: Any, java: Any) -> Any:
    children = children_of(plan)
    if len(children) != 1:
        return plan
    catalyst, rows = java.org.apache.spark.sql.catalyst, children[0]
    for time in _times(plan):
        if time.references().nonEmpty() and time.references().subsetOf(rows.outputSet()):
            known = catalyst.expressions.IsNotNull(time)
            rows = catalyst.plans.logical.Filter(known, rows)
    return plan if rows is children[0] else plan.withNewChildren(scala_sequence(java, [rows]))


def _times(plan: Any) -> Iterator[Any]:
    """Yields the different times of the calendar windows in the expressions of an operator."""
    found: list[Any] = []
    for struct in expressions_of_class(plan, "CreateNamedStruct"):
        time = _time(struct)
        if time is not None and not any(time.semanticEquals(each) for each in found):
            found.append(time)
            yield time


def _time(struct: Any) -> Any | None:
    """Returns the time whose calendar window a struct is; None for another struct."""
    if list(struct.dataType().fieldNames()) != ["start", "end"]:
        return None
    start, end = (_Bound.of(value) for value in scala_items(struct.valExprs()))
    if start is None or end is None or start.added is not None or end.added is None:
        return None
    same = (start.unit, start.zones) == (end.unit, end.zones) and len(set(start.zones)) == 1
    length = children_of(end.added)[1]
    expected = _LENGTHS.get((class_name(end.added), end.unit))
    if not same or class_name(length) != "Literal" or length.value() != expected:
        return None
    return start.time if start.time.semanticEquals(end.time) else None


class _Bound(NamedTuple):
    """A bound of a window: the truncation of a time to a unit, and an addition to it.

    `zones` are those of the conversions to UTC and from UTC, None without a conversion.
    """

    time: Any
    unit: str
    added: Any | None
    zones: tuple[str | None, str | None]

    @classmethod
    def of(cls, value: Any) -> _Bound | None:
        """Returns the bound that an expression is; None for another expression."""
        added, to_utc, from_utc = None, None, None
        while (kind := class_name(value)) != "TruncTimestamp":
            if kind == "ToUTCTimestamp":
                to_utc = _text(value)
            elif any(kind == name for name, _ in _LENGTHS) and added is None:
                added = value
            elif kind != "Cast":
                return None
            value = children_of(value)[0]
        unit, time = children_of(value)
        if class_name(time) == "FromUTCTimestamp":
            from_utc, time = _text(time), children_of(time)[0]
        return cls(time, str(unit).lower(), added, (to_utc, from_utc))


def _text(conversion: Any) -> str:
    """Returns the time zone of a conversion."""
    return str(children_of(conversion)[1])
