"""Aggregate functions that accumulate: their partial columns, and Spark's buffer from these.

A partial column is the sum, minimum or maximum of an expression over the rows of a group. Sums of
integers and decimals are exact, and contain rows that are retracted with a negative sign. Minima,
maxima and sums of floating-point numbers accumulate only if no row is retracted. The result is
Spark's own expression over the buffer of the function: it has Spark's type and rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column
from pyspark.sql.functions import coalesce, isnan, lit, when

from penstock.engine.catalyst.exact_sums import long_of, long_of_total
from penstock.engine.catalyst.java_trees import children_of
from penstock.engine.catalyst.logical_plans import Catalyst, named
from penstock.engine.catalyst.spark_plan import class_name, equal_nodes
from penstock.engine.updating.groups import Function
from penstock.engine.updating.weighted import Weighted

PARTIAL = "_penstock_partial_"
"""The prefix of partial columns."""

_REPLACED = frozenset({"BoolAnd", "BoolOr", "CountIf"})
"""Functions that Spark replaces by others."""
Buffer = Mapping[str, Column]
"""The values of the buffer of an aggregate function, by the names of its attributes."""

_INTEGERS = frozenset({"ByteType", "IntegerType", "ShortType"})
_FLOATS = frozenset({"DoubleType", "FloatType"})
_ANSI = "ANSI"
"""The mode of a function whose overflow is an error."""
_MAX_PRECISION = 28
"""A sum of decimals with more digits can overflow."""
ATOMIC = frozenset({
    *_INTEGERS, *_FLOATS, "BinaryType", "BooleanType", "DateType", "DecimalType", "LongType",
    "StringType", "TimestampNTZType", "TimestampType",
})  # fmt: skip
"""The types whose values partial columns and groups may have."""


@dataclass
class Partials:
    """The partial columns of an aggregate, each once."""

    catalyst: Catalyst
    input: Weighted
    columns: list[tuple[Column, Function]] = field(default_factory=list)
    _known: list[tuple[Any, Function]] = field(default_factory=list)

    @property
    def functions(self) -> dict[str, Function]:
        """The function of each partial column."""
        return {f"{PARTIAL}{i}": function for i, (_, function) in enumerate(self.columns)}

    def buffer(self, aggregate: Any) -> Buffer | None:
        """Returns the buffer of an aggregate expression; None if it does not accumulate."""
        function = function_of(aggregate)
        make = _ACCUMULATORS.get(class_name(function))
        if make is None or aggregate.isDistinct():
            return None
        filter_ = aggregate.filter()
        condition = self.catalyst.column(filter_.get()) if filter_.isDefined() else None
        return make(self, function, condition)

    def add(self, value: Column, function: Function) -> Column:
        """Returns the partial column of a value."""
        known = self.catalyst.expression(value), function
        for index, (expression, other) in enumerate(self._known):
            if other == function and equal_nodes(expression, known[0]):
                return named(f"{PARTIAL}{index}")
        self._known.append(known)
        self.columns.append((value, function))
        return named(f"{PARTIAL}{len(self.columns) - 1}")

    def count(self, operands: list[Any], condition: Column | None) -> Column:
        """Returns the number of rows without null operands that fulfil a condition."""
        valid = [self.catalyst.column(item).isNotNull() for item in operands if item.nullable()]
        weight = self.catalyst.column(self.input.weight).cast("long")
        total = self.add(_where(weight, *valid, condition), "sum")
        return coalesce(total, lit(0).cast("long"))

    def total(self, operand: Any, condition: Column | None) -> Column | None:
        """Returns the sum of an operand, null without a value; None if it does not accumulate."""
        operand = long_of(operand)
        type_ = operand.dataType()
        kind, value = class_name(type_), self.catalyst.column(operand)
        if kind in _FLOATS:
            if not self.input.inserts_only:
                return None
            return self.add(_where(value.cast("double"), condition), "sum")
        if kind == "LongType":
            value = value.cast("decimal(20,0)")
        elif kind in _INTEGERS:
            value = value.cast("long")
        elif kind != "DecimalType" or type_.precision() > _MAX_PRECISION:
            return None
        if self.input.inserts_only:
            return self.add(_where(value, condition), "sum")
        weight = self.catalyst.column(self.input.weight)
        value = when(weight > 0, value).otherwise(-value)
        total = self.add(_where(value, condition), "sum")
        return when(self.count([operand], condition) > 0, total)


def function_of(aggregate: Any) -> Any:
    """Returns the function of an aggregate expression that Spark computes."""
    function = aggregate.aggregateFunction()
    return function.replacement() if class_name(function) in _REPLACED else function


def _where(value: Column, *conditions: Column | None) -> Column:
    """Returns a value, or null unless all conditions hold."""
    for condition in conditions:
        if condition is not None:
            value = when(condition, value)
    return value


def _count(partials: Partials, function: Any, condition: Column | None) -> Buffer | None:
    return {"count": partials.count(children_of(function), condition)}


def _sum(partials: Partials, function: Any, condition: Column | None) -> Buffer | None:
    if function.evalContext().evalMode().toString() != _ANSI:
        return None
    total = partials.total(function.child(), condition)
    if total is None:
        return None
    kind = class_name(function.child().dataType())
    if kind == "DecimalType":
        return {"sum": coalesce(total, lit(0)), "isEmpty": total.isNull()}
    return {"sum": long_of_total(total) if kind == "LongType" else total}


def _average(partials: Partials, function: Any, condition: Column | None) -> Buffer | None:
    if function.evalMode().toString() != _ANSI:
        return None
    total = partials.total(function.child(), condition)
    if total is None:
        return None
    count = partials.count([function.child()], condition)
    return {"sum": coalesce(total, lit(0)), "count": count}


def _min(partials: Partials, function: Any, condition: Column | None) -> Buffer | None:
    number, nan = _extreme(partials, function, condition, "min")
    if number is None:
        return None
    return {"min": number if nan is None else coalesce(number, when(nan, lit(float("nan"))))}


def _max(partials: Partials, function: Any, condition: Column | None) -> Buffer | None:
    number, nan = _extreme(partials, function, condition, "max")
    if number is None:
        return None
    return {"max": number if nan is None else when(nan, lit(float("nan"))).otherwise(number)}


def _extreme(
    partials: Partials, function: Any, condition: Column | None, name: Function
) -> tuple[Column | None, Column | None]:
    """Returns the minimum or maximum of the values that are not NaN, and whether one is NaN."""
    operand = function.child()
    kind, value = class_name(operand.dataType()), partials.catalyst.column(operand)
    if not partials.input.inserts_only or not is_atomic(operand.dataType()):
        return None, None
    if kind not in _FLOATS:
        return partials.add(_where(value, condition), name), None
    number = partials.add(_where(value, ~isnan(value), condition), name)
    return number, partials.add(_where(isnan(value), condition), "max")


def is_atomic(type_: Any) -> bool:
    """Returns whether values of a type are ordered by their bytes or by their number."""
    kind = class_name(type_)
    if kind == "StringType":
        return bool(type_.supportsBinaryOrdering())
    return kind in ATOMIC


_ACCUMULATORS: Mapping[str, Callable[[Partials, Any, Column | None], Buffer | None]] = {
    "Average": _average,
    "Count": _count,
    "Max": _max,
    "Min": _min,
    "Sum": _sum,
}
