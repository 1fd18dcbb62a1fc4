"""Fallible SQL: whether the values of a row can fail the evaluation of a DataFrame."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame
from pyspark.util import PythonEvalType

from penstock.engine.catalyst.java_trees import (
    children_of,
    expressions_of,
    is_constant,
    type_name,
    varying_children_of,
)
from penstock.engine.catalyst.spark_plan import analyzed_plan, class_name, scala_items

_SAFE = frozenset({
    "Alias", "And", "AttributeReference", "CaseWhen", "Coalesce", "Concat", "ConcatWs", "Contains",
    "CreateArray", "CreateNamedStruct", "DayOfMonth", "DayOfWeek", "EndsWith", "EqualNullSafe",
    "EqualTo", "GetJsonObject", "GetStructField", "GreaterThan", "GreaterThanOrEqual", "Greatest",
    "Hour", "If", "In", "InSet", "InitCap", "IsNaN", "IsNotNull", "IsNull", "KnownNotNull",
    "KnownNullable", "Least", "Left", "Length", "LessThan", "LessThanOrEqual", "Lower", "Md5",
    "Minute", "Month", "Murmur3Hash", "Not", "Or", "PreciseTimestampConversion", "Quarter",
    "Reverse", "Right", "Second", "Sha1", "Sha2", "Size", "StartsWith", "StringInstr",
    "StringReplace", "StringTrim", "StringTrimLeft", "StringTrimRight", "StructsToJson",
    "Substring", "TruncDate", "TruncTimestamp", "TryEval", "Upper", "XxHash64", "Year",
})  # fmt: skip
"""Expressions that do not fail, whatever the values of their inputs."""
_LEAVES = frozenset({"AttributeReference", "Literal"})
_REPLACED = frozenset({
    "NullIf", "Nvl", "Nvl2", "TryAdd", "TryDivide", "TryMultiply", "TrySubtract",
})  # fmt: skip
"""Expressions that do not fail, with their inputs as parameters."""
_ARITHMETIC = frozenset({"Abs", "Add", "Multiply", "Subtract", "UnaryMinus"})
"""Expressions that do not fail for floating-point numbers."""
_CONSTANT_INPUT = {"ILike": 1, "Like": 1, "RLike": 1, "RegExpReplace": 1, "SplitPart": 2}
"""Expressions that do not fail if the input with this index is a constant."""
_FLOATING = frozenset({"DoubleType", "FloatType"})
OPAQUE = frozenset({"Exists", "InSubquery", "LateralSubquery", "PythonUDF", "ScalarSubquery"})
"""Expressions that Spark does not evaluate with the other ones of their operator."""
_FAILURES = "_penstock_failures"
"""The attribute of a Java object with the result of `find_failures`."""


def is_fallible(frame: DataFrame) -> bool:
    """Returns whether an expression of a frame may fail on the values of a row. Reads no data.

    Unknown expressions may fail, and so may functions in Python, except the steps of a pipeline,
    whose bad records are dead letters. The computation of the rows below the frame does not count.
    """
    try:
        return any(find_failures(expression) for expression in _expressions(frame))
    except Py4JError:
        return True


def find_failures(expression: Any) -> set[str]:
    """Returns the classes of the subexpressions that may fail on the values of a row."""
    known: set[str] | None = vars(expression).get(_FAILURES)
    if known is None:
        known = vars(expression)[_FAILURES] = _search_failures(expression)
    return known


def _search_failures(expression: Any) -> set[str]:
    found: set[str] = set()
    pending = [] if is_constant(expression) else [expression]
    while pending:
        expression = pending.pop()
        name = class_name(expression)
        if name not in _LEAVES:
            if _may_fail(expression, name):
                found.add(name)
            pending += _inputs(expression, name)
    return found


def is_function_call(expression: Any) -> bool:
    """Returns whether an expression calls a user-defined function, whose errors are values."""
    return (
        class_name(expression) == "PythonUDF"
        and int(expression.evalType()) == PythonEvalType.SQL_SCALAR_ARROW_UDF
    )


def _expressions(frame: DataFrame) -> Iterator[Any]:
    """Yields the expressions of the operators of the analyzed plan."""
    plans = [analyzed_plan(frame)]
    while plans:
        plan = plans.pop()
        plans += children_of(plan)
        yield from expressions_of(plan)


def _inputs(expression: Any, name: str) -> list[Any]:
    """Returns the subexpressions whose failures are those of an expression, without constants."""
    if name == "TryEval":
        return []
    if name == "PreciseTimestampConversion":
        return [time for time in _event_times(expression) if not is_constant(time)]
    if name in _REPLACED:
        return [each for each in scala_items(expression.parameters()) if not is_constant(each)]
    return varying_children_of(expression)


def _event_times(bound: Any) -> list[Any]:
    """Returns the times from which Spark computes the bound of a window.

    The computation is in whole microseconds, which no TIMESTAMP overflows.
    """
    children = children_of(bound)
    if class_name(bound) == "PreciseTimestampConversion" and _is_number(bound):
        return children
    return [time for child in children for time in _event_times(child)]


def _is_number(expression: Any) -> bool:
    return type_name(expression) == "LongType"


def _may_fail(expression: Any, name: str) -> bool:
    if name in _ARITHMETIC:
        return type_name(expression) not in _FLOATING
    if name == "Cast":
        return _cast_may_fail(expression)
    if name in _CONSTANT_INPUT:
        return not is_constant(children_of(expression)[_CONSTANT_INPUT[name]])
    if name == "PythonUDF":
        kind = int(expression.evalType())
        return kind != PythonEvalType.SQL_MAP_ARROW_ITER_UDF and not is_function_call(expression)
    return name not in _SAFE and name not in _REPLACED


def _cast_may_fail(cast: Any) -> bool:
    if cast.evalMode().toString() != "ANSI" or type_name(cast) == "StringType":
        return False
    (child,) = children_of(cast)
    return not cast.canUpCast(child.dataType(), cast.dataType())
