"""Guards of maps: conditions under which an expression that builds a map does not fail.

These expressions keep the keys of a map under construction from row to row. If a key is null or
duplicated, the exception leaves its keys behind, and they become keys of the next row. Below
`TryEval` such an expression is evaluated only if its keys are valid.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import Column
from pyspark.sql.functions import (
    array,
    array_compact,
    array_distinct,
    concat,
    element_at,
    lit,
    map_keys,
    raise_error,
    size,
    split,
    transform,
    when,
)

from penstock.engine.catalyst.java_trees import children_of
from penstock.engine.catalyst.spark_plan import class_name, map_children

NULL_KEY = "a key of a map is null"
DUPLICATED_KEY = "a key of a map is duplicated"
ToColumn = Callable[[Any], Column]


def guard_maps(expression: Any, column: ToColumn, java: Any) -> Any:
    """Returns an expression whose maps raise an error before they are built, if they would fail.

    `column` returns an expression of Catalyst as a column.
    """
    guarded = map_children(expression, lambda child: guard_maps(child, column, java))
    find_keys = _KEYS.get(class_name(expression))
    if find_keys is None:
        return guarded
    keys = find_keys(guarded, column, java)
    known = array_compact(keys)
    checked: Any = (
        when(size(known) < size(keys), raise_error(lit(NULL_KEY)))
        .when(size(array_distinct(known)) < size(known), raise_error(lit(DUPLICATED_KEY)))
        .otherwise(column(guarded))
    )
    return java.org.apache.spark.sql.classic.ExpressionUtils.expression(checked._jc)


def _of_pairs(map_: Any, column: ToColumn, java: Any) -> Column:
    return array(*map(column, children_of(map_)[::2]))


def _of_arrays(map_: Any, column: ToColumn, java: Any) -> Column:
    return column(children_of(map_)[0])


def _of_entries(map_: Any, column: ToColumn, java: Any) -> Column:
    (entries,) = children_of(map_)
    name = entries.dataType().elementType().apply(0).name()
    pairs = column(entries)
    # The map of entries with a null entry is null.
    whole = size(array_compact(pairs)) == size(pairs)
    return when(whole, transform(pairs, lambda entry: entry.getField(name)))


def _of_maps(map_: Any, column: ToColumn, java: Any) -> Column:
    return concat(*(map_keys(column(each)) for each in children_of(map_)))


def _of_text(map_: Any, column: ToColumn, java: Any) -> Column:
    text, pair, key = map(column, children_of(map_))
    return transform(split(text, pair, -1), lambda each: element_at(split(each, key, 2), 1))


def _of_new_keys(map_: Any, column: ToColumn, java: Any) -> Column:
    expressions = java.org.apache.spark.sql.catalyst.expressions
    old, function = children_of(map_)
    keys, values = expressions.MapKeys(old), expressions.MapValues(old)
    return column(expressions.ZipWith(keys, values, function))


_KEYS: dict[str, Callable[[Any, ToColumn, Any], Column]] = {
    "CreateMap": _of_pairs,
    "MapConcat": _of_maps,
    "MapFromArrays": _of_arrays,
    "MapFromEntries": _of_entries,
    "StringToMap": _of_text,
    "TransformKeys": _of_new_keys,
}
"""The functions that return the keys of an expression as an array, by its class."""
