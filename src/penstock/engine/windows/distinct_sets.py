"""Sums and averages of distinct values, computed from the set of the values.

A query may have such aggregates of different values, which Spark does not accept in a stream.
"""

from __future__ import annotations

from typing import Any

from penstock.engine.catalyst.java_trees import children_of
from penstock.engine.catalyst.spark_plan import (
    class_name,
    map_children,
    scala_sequence,
)

_FUNCTIONS = ("Average", "Sum")


def over_sets(expression: Any, java: Any) -> Any:
    """Returns an expression without `sum(DISTINCT a)` and `avg(DISTINCT a)`, of the same type."""
    if class_name(expression) == "AggregateExpression":
        function = expression.aggregateFunction()
        if not expression.isDistinct() or class_name(function) not in _FUNCTIONS:
            return expression
        return _Sets(java).aggregated(function, expression.filter())
    return map_children(expression, lambda child: over_sets(child, java))


class _Sets:
    """Constructors of Spark's expressions."""

    def __init__(self, java: Any) -> None:
        self.java = java
        self.expressions = java.org.apache.spark.sql.catalyst.expressions

    def aggregated(self, function: Any, filter_: Any) -> Any:
        """Returns the result of an aggregate function over the set of values under a filter."""
        value = children_of(function)[0]
        values = self.expressions.aggregate.CollectSet(value).toAggregateExpression(False, filter_)
        if class_name(function) == "Sum":
            return self._sum(values, function.dataType())
        total = self._sum(values, self.expressions.aggregate.Sum(value).dataType())
        count = self.expressions.Size(values)
        if class_name(function.dataType()) == "DoubleType":
            total, count = (self._cast(each, function.dataType()) for each in (total, count))
        else:
            decimal = self.java.org.apache.spark.sql.types.DecimalType(10, 0)
            count = self._cast(count, decimal)
        return self._cast(self.expressions.Divide(total, count), function.dataType())

    def _sum(self, values: Any, type_: Any) -> Any:
        """Returns the sum of an array; null if the array is empty."""
        arrays = self.java.org.apache.spark.sql.types.ArrayType(type_, True)
        total, item = self._variable("_sum", type_), self._variable("_item", type_)
        added = self._cast(self.expressions.Add(total, item), type_)
        merged = self.expressions.Coalesce(scala_sequence(self.java, [added, item]))
        literals: Any = getattr(self.expressions, "Literal$").__getattr__("MODULE$")
        result = self._variable("_sum", type_)
        return self.expressions.ArrayAggregate(
            self._cast(values, arrays), literals.create(None, type_),
            self._function(merged, total, item), self._function(result, result),
        )  # fmt: skip

    def _cast(self, value: Any, type_: Any) -> Any:
        return self.expressions.Cast(value, type_, self.java.scala.Option.empty())

    def _variable(self, name: str, type_: Any) -> Any:
        ids: Any = getattr(self.expressions, "NamedExpression$").__getattr__("MODULE$")
        reference = self.java.java.util.concurrent.atomic.AtomicReference()
        return self.expressions.NamedLambdaVariable(name, type_, True, ids.newExprId(), reference)

    def _function(self, body: Any, *variables: Any) -> Any:
        return self.expressions.LambdaFunction(body, scala_sequence(self.java, variables), False)
