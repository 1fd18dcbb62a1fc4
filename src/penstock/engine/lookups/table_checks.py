"""Checks of dynamic tables: functions of one argument, which look up its values in tasks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import BooleanType

from penstock.core.error_codec import encode_errors
from penstock.core.names import quote_name
from penstock.engine.catalyst.java_trees import (
    children_of,
    contains_pattern,
    expressions_of_class,
)
from penstock.engine.catalyst.spark_plan import analyzed_plan, scala_items
from penstock.engine.lookups.key_lookup import KeyLookup
from penstock.engine.lookups.lookup_errors import lookup_error
from penstock.sdk.columns.type_names import sql_name
from penstock.sql.dialect.table_checks import check_function

_INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_NULL = "VOID"


@dataclass(frozen=True)
class TableCheck:
    """The function that returns whether a table has a value, or any element of an array."""

    lookup: KeyLookup

    @encode_errors
    def __call__(self, arrays: Iterator[pa.Array]) -> Iterator[pa.BooleanArray]:
        pending: deque[pa.Array] = deque()
        (field,) = self.lookup.keys

        def keys() -> Iterator[pa.RecordBatch]:
            for array in arrays:
                pending.append(array)
                values = pc.list_flatten(array) if _is_list(array) else array
                yield pa.RecordBatch.from_arrays([values.cast(field.type)], names=[field.name])

        for found in self.lookup.rows_of(keys()):
            array = pending.popleft()
            has_value = np.asarray(found.is_valid())
            if _is_list(array):
                has_value = _any_of(array, has_value)
            yield pa.array(has_value, pa.bool_(), mask=np.asarray(array.is_null()))


def _is_list(array: pa.Array) -> bool:
    return bool(pa.types.is_list(array.type) or pa.types.is_large_list(array.type))


def _any_of(lists: pa.Array, has_value: np.ndarray) -> np.ndarray:
    """Returns whether each list has an element for which `has_value` is true."""
    parents = np.asarray(pc.list_parent_indices(lists))
    result = np.zeros(len(lists), bool)
    result[parents[has_value]] = True
    return result


@contextmanager
def registered_checks(lookups: Mapping[str, KeyLookup], session: SparkSession) -> Iterator[None]:
    """Registers the functions of tables while SQL is analyzed."""
    with registered_names(lookups, session):
        for table, lookup in lookups.items():
            make_udf: Any = arrow_udf
            session.udf.register(check_function(table), make_udf(_typed(lookup), BooleanType()))
        yield


@contextmanager
def registered_names(tables: Collection[str], session: SparkSession) -> Iterator[None]:
    """Registers functions of the names of those of tables, which are not called."""
    names = [check_function(table) for table in tables]
    for name in names:
        session.udf.register(name, bool, BooleanType())
    try:
        yield
    finally:
        for name in names:
            session.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {quote_name(name)}")


def _typed(lookup: KeyLookup) -> Callable[[Iterator[pa.Array]], Iterator[pa.Array]]:
    """Returns the function with the type hints by which Spark selects its kind."""
    check = TableCheck(lookup)

    def has_value(arrays: Iterator[pa.Array]) -> Iterator[pa.Array]:
        return check(arrays)

    return has_value


def check_types(frame: DataFrame, lookups: Mapping[str, KeyLookup]) -> None:
    """Checks the types of the arguments of checks. Raises SqlLookupError."""
    functions = {
        check_function(table): (table, sql_name(lookup.keys.types[0]))
        for table, lookup in lookups.items()
    }
    for call in _calls(analyzed_plan(frame)) if functions else ():
        table, expected = functions.get(str(call.name()), ("", ""))
        if not table:
            continue
        (argument,) = children_of(call)
        found = str(argument.dataType().sql())
        if not _fits(found, expected):
            raise lookup_error(
                f'the values of the dynamic table "{table}" are {expected}, and the argument is '
                f"{found}", call, f"Write CAST(... AS {expected}), or an array of {expected}.",
                "wrong-type",
            )  # fmt: skip


def _calls(plan: Any) -> Iterator[Any]:
    """Yields the calls of functions in Python in a plan."""
    if contains_pattern(plan, "PYTHON_UDF", only_streams=False):
        yield from expressions_of_class(plan, "PythonUDF")
    for below in (*children_of(plan), *scala_items(plan.subqueries())):
        yield from _calls(below)


def _fits(found: str, expected: str) -> bool:
    accepted: Sequence[str] = _INTEGERS if expected in _INTEGERS else (expected,)
    return any(found in (type_, f"ARRAY<{type_}>") for type_ in (*accepted, _NULL))
