"""Aggregate functions in two steps: a partial result for each pane, and the merge of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql.functions import lit, when

from penstock.engine.catalyst.java_names import java_names
from penstock.engine.catalyst.java_trees import children_of, is_deterministic
from penstock.engine.catalyst.spark_plan import class_name, scala_sequence
from penstock.engine.windows.pane_rows import Kind

_INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
_FLOATS = frozenset({"float", "double"})
_COMPARABLE = _INTEGERS | _FLOATS | {"boolean", "date", "string", "timestamp", "timestamp_ntz"}
_LONG_DIGITS = 18
_REPLACED = frozenset({"BoolAnd", "BoolOr", "CountIf"})
"""Functions that Spark replaces by others."""


class Unsupported(Exception):
    """An exception of an aggregation without a form by panes."""


@dataclass
class Aggregates:
    """The aggregate functions of an aggregation.

    `keys` are the columns by which rows are aggregated, and `values` the columns with the functions
    that aggregate them, by name.
    """

    session: SparkSession
    keys: dict[str, Column] = field(default_factory=dict)
    values: dict[str, tuple[Column, Kind]] = field(default_factory=dict)
    _merged: dict[int, Any] = field(default_factory=dict)

    def add_key(self, expression: Any) -> Any:
        """Adds a key. Returns its reference in the merge. Raises Unsupported."""
        if not is_key_type(expression):
            raise Unsupported(f"a key of type {expression.dataType().simpleString()}")
        return self._add_key(self._column(expression))

    def merge(self, aggregate: Any) -> Any:
        """Adds the partial results of an aggregate. Returns their merge. Raises Unsupported.

        An aggregate that occurs several times is merged once.
        """
        result = int(aggregate.resultId().id())
        if result not in self._merged:
            self._merged[result] = self._merge(aggregate)
        return self._merged[result]

    def _merge(self, aggregate: Any) -> Any:
        function = aggregate.aggregateFunction()
        if aggregate.isDistinct() or not is_deterministic(aggregate):
            raise Unsupported("a distinct or random aggregate")
        if class_name(function) in _REPLACED:
            function = function.replacement()
        found = _FUNCTIONS.get(class_name(function))
        if found is None:
            raise Unsupported(f"the function {function.prettyName()}")
        option = aggregate.filter()
        condition = self._column(option.get()) if option.isDefined() else None
        return found(self, function, condition)

    def count(self, function: Any, condition: Column | None) -> Any:
        zero = self._expressions.Literal.default(self._bigint)
        total = self._sum(self._add_count(function, condition))
        return self._expressions.Coalesce(scala_sequence(self._java, [total, zero]))

    def sum(self, function: Any, condition: Column | None) -> Any:
        (value,) = children_of(function)
        type_ = value.dataType().simpleString()
        if type_.startswith("decimal("):
            return self._decimal_sum(function, value, condition)
        if type_ not in _INTEGERS | _FLOATS:
            raise Unsupported(f"a sum of {type_}")
        wide = self._column(value).cast("bigint" if type_ in _INTEGERS else "double")
        return self._finish(function, self._add_value(_where(condition, wide), "sum"))

    def _decimal_sum(self, function: Any, value: Any, condition: Column | None) -> Any:
        """Merges a sum of decimals so short that it cannot overflow."""
        if value.dataType().precision() > _LONG_DIGITS:
            raise Unsupported("a sum of long decimals")
        type_ = function.dataType()
        wide = _where(condition, self._column(value).cast(type_.simpleString()))
        total = self._sum(self._add_value(wide, "sum"))
        return self._expressions.Cast(total, type_, self._java.scala.Option.empty())

    def average(self, function: Any, condition: Column | None) -> Any:
        (value,) = children_of(function)
        type_ = value.dataType().simpleString()
        if type_ not in _INTEGERS | _FLOATS:
            raise Unsupported(f"an average of {type_}")
        wide = _where(condition, self._column(value).cast("double"))
        total = self._sum(self._add_value(wide, "sum"))
        count = self._sum(self._add_count(function, condition))
        null = self._expressions.Literal(None, function.dataType())
        zero = self._expressions.Literal.default(self._bigint)
        is_empty = self._expressions.EqualTo(count, zero)
        return self._expressions.If(is_empty, null, self._expressions.Divide(total, count))

    def extreme(self, function: Any, condition: Column | None) -> Any:
        (value,) = children_of(function)
        type_ = value.dataType().simpleString()
        if not is_key_type(value):
            raise Unsupported(f"an extreme of {type_}")
        kind: Kind = "min" if class_name(function) == "Min" else "max"
        input_ = _where(condition, self._column(value))
        return self._finish(function, self._add_value(input_, kind))

    def set(self, function: Any, condition: Column | None) -> Any:
        """Merges a function of distinct values: they become keys."""
        value, *_ = children_of(function)
        nulls = class_name(function) == "CollectSet" and not function.ignoreNulls()
        if nulls or not is_key_type(value):
            raise Unsupported(f"a set of {value.dataType().simpleString()}")
        key = self._add_key(_where(condition, self._column(value)))
        return self._finish(function, key)

    def _add_key(self, column: Column) -> Any:
        name = f"_pane_key_{len(self.keys)}"
        self.keys[name] = column
        return self._reference(name)

    def _add_value(self, column: Column, kind: Kind) -> Any:
        name = f"_pane_value_{len(self.values)}"
        self.values[name] = (column, kind)
        return self._reference(name)

    def _add_count(self, function: Any, condition: Column | None) -> Any:
        values = [each for each in children_of(function) if each.nullable()]
        tests = [self._column(each).isNotNull() for each in values]
        if condition is not None:
            tests.insert(0, condition)
        is_counted = lit(True)
        if tests:
            is_counted = when(reduce(lambda left, right: left & right, tests), is_counted)
        return self._add_value(is_counted, "count")

    def _sum(self, partial: Any) -> Any:
        return self._expressions.aggregate.Sum(partial).toAggregateExpression()

    def _finish(self, function: Any, input_: Any) -> Any:
        """Returns the aggregate of a function over another input."""
        _, *others = children_of(function)
        children = scala_sequence(self._java, [input_, *others])
        return function.withNewChildren(children).toAggregateExpression()

    @property
    def _java(self) -> Any:
        return java_names(self.session)

    def _column(self, expression: Any) -> Column:
        return Column(self._java.org.apache.spark.sql.classic.ExpressionUtils.column(expression))

    def _reference(self, name: str) -> Any:
        return self._java.org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute.quotedString(
            name
        )

    @property
    def _bigint(self) -> Any:
        return self._java.org.apache.spark.sql.types.DataType.fromDDL("BIGINT")

    @property
    def _expressions(self) -> Any:
        return self._java.org.apache.spark.sql.catalyst.expressions


def is_key_type(expression: Any) -> bool:
    """Returns whether rows of a task can be grouped by an expression."""
    type_ = expression.dataType().simpleString()
    return type_ in _COMPARABLE or type_.startswith("decimal(")


def _where(condition: Column | None, value: Column) -> Column:
    return value if condition is None else when(condition, value)


_FUNCTIONS: Mapping[str, Callable[[Aggregates, Any, Column | None], Any]] = {
    "Average": Aggregates.average,
    "BitAndAgg": Aggregates.set,
    "BitOrAgg": Aggregates.set,
    "CollectSet": Aggregates.set,
    "Count": Aggregates.count,
    "HyperLogLogPlusPlus": Aggregates.set,
    "Max": Aggregates.extreme,
    "Min": Aggregates.extreme,
    "Sum": Aggregates.sum,
}
