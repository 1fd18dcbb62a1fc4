"""Exact sums of BIGINT: the total of all values, whose conversion to BIGINT is checked.

Spark's sum fails as soon as a part of the values overflows, in any order of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import Column
from pyspark.sql.functions import concat, lit, raise_error, shiftleft, shiftright, when

from penstock.engine.catalyst.java_trees import children_of, with_expressions
from penstock.engine.catalyst.logical_plans import Catalyst
from penstock.engine.catalyst.spark_plan import class_name, has_metadata, map_children, scala_items
from penstock.engine.catalyst.wide_sums import wide_total

_TOTAL = "decimal(38,0)"
_LONG = "decimal(19,0)"
_WIDE = "decimal(20,0)"
_MARK = "penstock.total"
_ANSI = "ANSI"
_BITS = 32
_LEAST, _GREATEST = -(2**63), 2**63 - 1
_Result = Callable[[Column], Any]
"""The result of an aggregate function by the column of its total, as an expression."""


def with_totals(catalyst: Catalyst, rows: Any, results: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Returns rows of groups with exact totals in place of sums, and their results."""

    def total_of(call: Any) -> tuple[Any, _Result] | None:
        wide = wide_total(catalyst, call)
        if wide is not None:
            return catalyst.converted(wide.value), wide.result
        return (_over_decimals(catalyst, call), checked) if is_long_sum(call) else None

    checked = _checked(catalyst)
    return _with_totals(catalyst, rows, results, total_of)


def with_marked_totals(
    catalyst: Catalyst, rows: Any, results: Sequence[Any]
) -> tuple[Any, list[Any]]:
    """Returns the same for a stream, whose totals are exact after `with_exact_sums`.

    The state is the same as without totals.
    """

    def total_of(call: Any) -> tuple[Any, _Result] | None:
        if not is_long_sum(call):
            return None
        return catalyst.converted(catalyst.column(call).cast(_TOTAL)), checked

    checked = _checked(catalyst)
    return _with_totals(catalyst, rows, results, total_of)


def with_window_totals(catalyst: Catalyst, window: Any) -> tuple[Any, list[Any]] | None:
    """Returns rows with exact totals in place of sums of BIGINT with OVER, and their results.

    Returns None for window functions without such sums.
    """
    replaced, results = [], scala_items(window.child().output())
    for item in scala_items(window.windowExpressions()):
        call, *spec = children_of(children_of(item)[0]) or [None]
        if call is None or not is_long_sum(call):
            results.append(item.toAttribute())
            continue
        parts = catalyst.sequence([_over_decimals(catalyst, call), *spec])
        total = _marked(catalyst, children_of(item)[0].withNewChildren(parts), item.name())
        replaced.append((item, total))
        checked = catalyst.converted(long_of_total(catalyst.column(total.toAttribute())))
        results += catalyst.rename([checked], [item.toAttribute()])
    return (with_expressions(window, replaced), results) if replaced else None


def has_total(column: Any) -> bool:
    """Returns whether a column of the rows of groups is a total."""
    return has_metadata(column, _MARK)


def with_exact_sums(catalyst: Catalyst, aggregate: Any) -> Any:
    """Returns an aggregation of a stream without sums of BIGINT that overflow in parts.

    Each sum becomes two: of the upper and of the lower halves of the values.
    """
    items = scala_items(aggregate.aggregateExpressions())
    exact = [_with_halves(catalyst, item) for item in items]
    if all(new is old for new, old in zip(exact, items, strict=True)):
        return aggregate
    groups, columns = aggregate.groupingExpressions(), catalyst.sequence(exact)
    return catalyst.plans.Aggregate(groups, columns, aggregate.child(), aggregate.hint())


def is_long_sum(call: Any) -> bool:
    """Returns whether an expression is a sum of BIGINT whose overflow is an error."""
    if class_name(call) != "AggregateExpression":
        return False
    function = call.aggregateFunction()
    return (
        class_name(function) == "Sum"
        and _is_long(function.child())
        and function.evalContext().evalMode().toString() == _ANSI
    )


def long_of(value: Any) -> Any:
    """Returns the BIGINT that `with_totals` has converted to a decimal; or the value itself."""
    is_cast = class_name(value) == "Cast" and value.dataType().simpleString() == _LONG
    return value.child() if is_cast and _is_long(value.child()) else value


def long_of_total(total: Column) -> Column:
    """Returns a total, a DECIMAL, as BIGINT. Raises an error of the row if it overflows."""
    overflows = (total < lit(_LEAST)) | (total > lit(_GREATEST))
    return when(overflows, _overflow(total)).otherwise(total.cast("bigint"))


def _is_long(value: Any) -> bool:
    return class_name(value.dataType()) == "LongType"


def _overflow(total: Column) -> Column:
    return raise_error(concat(lit("the sum "), total.cast("string"), lit(" overflows BIGINT")))


def _checked(catalyst: Catalyst) -> _Result:
    return lambda total: catalyst.converted(long_of_total(total))


def _with_totals(
    catalyst: Catalyst,
    rows: Any,
    results: Sequence[Any],
    total_of: Callable[[Any], tuple[Any, _Result] | None],
) -> tuple[Any, list[Any]]:
    """Returns rows and results by `total_of`: the total of a call, and its result."""
    items, replaced = scala_items(rows.aggregateExpressions()), []
    for index, item in enumerate(items):
        found = total_of(item.child()) if class_name(item) == "Alias" else None
        if found is not None:
            total, result = found
            items[index] = _marked(catalyst, total, item.name())
            replaced.append((index, item.exprId(), result))
    if not replaced:
        return rows, list(results)
    groups, columns = rows.groupingExpressions(), catalyst.sequence(items)
    rows = catalyst.plans.Aggregate(groups, columns, rows.child(), rows.hint())
    rows = rows if rows.resolved() else catalyst.analyzed(rows)
    output = scala_items(rows.output())
    checked = [(sum_, result(catalyst.column(output[index]))) for index, sum_, result in replaced]
    return rows, [_over_totals(catalyst, result, checked) for result in results]


def _over_decimals(catalyst: Catalyst, call: Any) -> Any:
    """Returns a sum of BIGINT as a sum of decimals."""
    function = call.aggregateFunction()
    value = catalyst.converted(catalyst.column(function.child()).cast(_LONG))
    function = function.withNewChildren(catalyst.sequence([value]))
    return call.copy(function, call.mode(), call.isDistinct(), call.filter(), call.resultId())


def _marked(catalyst: Catalyst, total: Any, name: str) -> Any:
    """Returns the column of a total, which is marked for `with_exact_sums`."""
    named = catalyst.expressions.NamedExpression.newExprId()
    mark = catalyst.java.org.apache.spark.sql.types.Metadata.fromJson(f'{{"{_MARK}": true}}')
    none, some = catalyst.sequence([]), catalyst.java.scala.Option.apply(mark)
    return catalyst.expressions.Alias(total, name, named, none, some, none)


def _over_totals(catalyst: Catalyst, result: Any, checked: Sequence[tuple[Any, Any]]) -> Any:
    """Returns an expression with checked totals in place of sums."""
    if class_name(result) == "AttributeReference":
        return next((value for sum_, value in checked if result.exprId().equals(sum_)), result)
    return map_children(result, lambda child: _over_totals(catalyst, child, checked))


def _with_halves(catalyst: Catalyst, expression: Any) -> Any:
    if class_name(expression) == "Alias" and class_name(expression.child()) == "Cast":
        call = expression.child().child()
        if has_total(expression) and is_long_sum(call) and not call.isDistinct():
            total = _total_of_halves(*_halves(catalyst, call))
            return expression.withNewChildren(catalyst.sequence([catalyst.converted(total)]))
    if is_long_sum(expression) and not expression.isDistinct():
        return catalyst.converted(_long_of_halves(*_halves(catalyst, expression)))
    return map_children(expression, lambda child: _with_halves(catalyst, child))


def _halves(catalyst: Catalyst, call: Any) -> tuple[Column, Column]:
    """Returns the sums of the upper and of the lower halves of values, rounded to the nearest.

    The lower half of a value has a sign, so that the halves of a small value are 0 and the value.
    """
    function = call.aggregateFunction()
    value = catalyst.column(function.child())
    upper = shiftright(value, _BITS) + shiftright(value, _BITS - 1).bitwiseAND(lit(1))
    lower = shiftright(shiftleft(value, _BITS), _BITS)
    sums = []
    for half in (upper, lower):
        one = function.withNewChildren(catalyst.sequence([catalyst.converted(half)]))
        sums.append(catalyst.column(one.toAggregateExpression(False, call.filter())))
    return sums[0], sums[1]


def _long_of_halves(upper: Column, lower: Column) -> Column:
    """Returns the total of sums of halves as BIGINT. Raises an error of the row if it overflows."""
    carried = upper + shiftright(lower, _BITS)
    overflows = (carried < lit(-(2**31))) | (carried > lit(2**31 - 1))
    total = carried * lit(2**_BITS) + lower.bitwiseAND(lit(2**_BITS - 1))
    return when(overflows, _overflow(_total_of_halves(upper, lower))).otherwise(total)


def _total_of_halves(upper: Column, lower: Column) -> Column:
    """Returns the total of sums of halves as a decimal."""
    shifted = upper.cast(_WIDE) * lit(2**_BITS).cast("decimal(10,0)")
    return (shifted + lower.cast(_WIDE)).cast(_TOTAL)
