"""Exact sums and averages of intervals, and of DECIMAL whose total may have more than 38 digits.

The total of a group is a column of its own, which is converted to the type of the result. A total
of DECIMAL is a text. It is computed from two sums: of the upper and of the lower digits.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

from pyspark.sql import Column
from pyspark.sql.functions import (
    abs as absolute,
)
from pyspark.sql.functions import (
    call_function,
    concat,
    lit,
    lpad,
    raise_error,
    regexp_replace,
    struct,
    substring,
    translate,
    when,
)
from pyspark.sql.functions import count as count_of
from pyspark.sql.functions import sum as sum_of

from penstock.engine.catalyst.function_calls import replace_call
from penstock.engine.catalyst.logical_plans import Catalyst
from penstock.engine.catalyst.spark_plan import class_name, scala_items

NARROW = 28
"""The most digits of a DECIMAL whose sums Spark computes with more digits."""
_PART = "decimal(29,0)"
"""The type of parts of values. The state of an updating query has no sums of them."""
_LOWER = 19
_ANSI = "ANSI"
_BOUNDS = {
    "DayTimeIntervalType": (2**63, "microseconds"),
    "YearMonthIntervalType": (2**31, "months"),
}


class WideTotal(NamedTuple):
    """The total of a group, and the result of an aggregate function by the column of the total."""

    value: Column
    result: Callable[[Column], Any]


def wide_total(catalyst: Catalyst, call: Any) -> WideTotal | None:
    """Returns the total of a sum or an average whose overflow is an error; None of other calls.

    Sums of different values are those of Spark.
    """
    if class_name(call) != "AggregateExpression" or call.isDistinct():
        return None
    function = call.aggregateFunction()
    kind = class_name(function)
    if kind not in ("Average", "Sum"):
        return None
    mode = function.evalContext().evalMode() if kind == "Sum" else function.evalMode()
    make = _total_of(catalyst, function.child().dataType())
    if make is None or mode.toString() != _ANSI:
        return None
    value = catalyst.column(function.child())
    if call.filter().isDefined():
        value = when(catalyst.column(call.filter().get()), value)
    total = make(value)
    if kind == "Sum":
        return WideTotal(total.value, lambda column: catalyst.converted(total.result(column)))
    pair = struct(total.value.alias("total"), count_of(value).alias("count"))
    return WideTotal(pair, lambda column: _average(catalyst, function, total, column))


def _average(catalyst: Catalyst, function: Any, total: WideTotal, pair: Column) -> Any:
    """Returns Spark's average of a total and a number of values."""
    result = function.evaluateExpression()
    values = {"sum": total.result(pair.getField("total")), "count": pair.getField("count")}
    for attribute in scala_items(function.aggBufferAttributes()):
        value = catalyst.converted(values[str(attribute.name())])
        result = replace_call(result, attribute, value)
    return result


def _total_of(catalyst: Catalyst, type_: Any) -> Callable[[Column], WideTotal] | None:
    """Returns the function of the total of values of a type; None for other types."""
    kind = class_name(type_)
    if kind == "DecimalType" and type_.precision() > NARROW:
        return lambda value: _decimal_total(value, int(type_.scale()))
    if kind in _BOUNDS:
        return lambda value: _interval_total(catalyst, value, type_)
    return None


def _interval_total(catalyst: Catalyst, value: Column, type_: Any) -> WideTotal:
    """Returns the total of intervals, which are microseconds or months."""
    types = catalyst.java.org.apache.spark.sql.types.DataTypes
    bound, unit = _BOUNDS[class_name(type_)]
    integer = types.LongType if unit == "microseconds" else types.IntegerType
    name = str(type_.sql())

    def converted(column: Column, old: Any, new: Any) -> Column:
        expression = catalyst.converted(column)
        return catalyst.column(
            catalyst.expressions.PreciseTimestampConversion(expression, old, new)
        )

    def result(total: Column) -> Column:
        overflows = (total < lit(-bound)) | (total > lit(bound - 1))
        number = total.cast(str(integer.sql()))
        message = concat(lit("the sum "), total.cast("string"), lit(f" {unit} overflows {name}"))
        return when(overflows, raise_error(message)).otherwise(converted(number, integer, type_))

    return WideTotal(sum_of(converted(value, type_, integer).cast(_PART)), result)


def _decimal_total(value: Column, scale: int) -> WideTotal:
    """Returns the total of values of DECIMAL, as a text."""
    digits = lpad(translate(value.cast("string"), "-.", ""), 20 + _LOWER, "0")
    parts = (substring(digits, 1, 20), substring(digits, 21, _LOWER))
    upper, lower = (
        sum_of(when(value < 0, -part.cast(_PART)).otherwise(part.cast(_PART))) for part in parts
    )
    type_ = f"decimal(38,{scale})"

    def result(total: Column) -> Column:
        fitting = total.try_cast(type_)
        message = concat(lit("the sum "), total, lit(f" overflows {type_.upper()}"))
        overflows = fitting.isNull() & total.isNotNull()
        return when(overflows, raise_error(message)).otherwise(fitting)

    return WideTotal(_text(upper, lower, scale), result)


def _text(upper: Column, lower: Column, scale: int) -> Column:
    """Returns the text of a total from the sums of the upper and of the lower digits."""
    unit = lit(Decimal(10**_LOWER))
    upper, lower = upper + call_function("div", lower, unit), lower % unit
    # Both parts have the sign of the total.
    borrows, carries = (upper > 0) & (lower < 0), (upper < 0) & (lower > 0)
    upper, lower = (
        when(borrows, upper - 1).when(carries, upper + 1).otherwise(upper),
        when(borrows, lower + unit).when(carries, lower - unit).otherwise(lower),
    )
    sign = when((upper < 0) | (lower < 0), lit("-")).otherwise(lit(""))
    digits = concat(
        lpad(absolute(upper).cast("string"), 38, "0"),
        lpad(absolute(lower).cast("string"), _LOWER, "0"),
    )
    whole = regexp_replace(substring(digits, 1, 38 + _LOWER - scale), "^0+(?=.)", "")
    if not scale:
        return concat(sign, whole)
    return concat(sign, whole, lit("."), substring(digits, 38 + _LOWER - scale + 1, scale))
