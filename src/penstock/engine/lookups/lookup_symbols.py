"""Lookup tables as symbols in Spark's plans.

Such a table is a projection of `lookup(key)` over all keys, which are not known. `lookup_joins`
replaces each join with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import struct
from pyspark.sql.pandas.functions import arrow_udf

from penstock.engine.catalyst.columns import to_spark
from penstock.engine.catalyst.java_trees import children_of
from penstock.engine.catalyst.logical_plans import Catalyst, named
from penstock.engine.catalyst.spark_plan import analyzed_plan, class_name, conjuncts, scala_items
from penstock.engine.lookups.key_lookup import KeyLookup

_MARK = "penstock lookup "
"""The start of the name of the RDD that stands for all keys of a table."""
FOUND = "_penstock_found"
"""The column of the found row."""
_ROW_BY_ROW = ("Filter", "Project", "ResolvedHint", "SubqueryAlias", "View")
"""The operators that may be above a table: its rows remain single."""


def lookup_table(lookup: KeyLookup, session: SparkSession) -> DataFrame:
    """Returns a lookup table for queries whose joins `lookup_joins` replaces. Reads no data."""
    keys = to_spark(lookup.keys)
    everything = session.createDataFrame(session.sparkContext.emptyRDD(), keys)
    analyzed_plan(everything).rdd().setName(f"{_MARK}{lookup.spool.node}")
    make_udf: Any = arrow_udf
    found = make_udf(_typed(lookup), to_spark(lookup.rows)).asNondeterministic()
    key_columns = [named(name) for name in keys.names]
    symbol = everything.select(*key_columns, found(struct(*key_columns)).alias(FOUND))
    columns = [
        named(name) if name in keys.names else named(FOUND).getField(name).alias(name)
        for name in lookup.rows.names
    ]
    return symbol.select(*columns)


def _typed(lookup: KeyLookup) -> Callable[[Iterator[pa.Array]], Iterator[pa.Array]]:
    """Returns the function of a lookup with the type hints by which Spark selects its kind."""

    def look_up(arrays: Iterator[pa.Array]) -> Iterator[pa.Array]:
        return lookup(arrays)

    return look_up


@dataclass(frozen=True)
class LookupTable:
    """A side of a join that is a lookup table, with projections and filters above.

    `output` are its columns, each an expression over the columns of `symbol`, and `filters` are
    conditions over these.
    """

    name: str
    symbol: Any
    output: tuple[tuple[Any, Any], ...]
    filters: tuple[Any, ...]

    @property
    def keys(self) -> list[Any]:
        """The columns of the key."""
        return list(scala_items(self.symbol.output())[:-1])

    @property
    def found(self) -> Any:
        """The column of the found row."""
        return scala_items(self.symbol.output())[-1]

    @property
    def call(self) -> Any:
        """The call of the function."""
        return scala_items(self.symbol.projectList())[-1].child()


def find_table(plan: Any, catalyst: Catalyst) -> LookupTable | None:
    """Returns a plan that is a lookup table under projections and filters; None otherwise."""
    name = symbol_name(plan)
    if name is not None:
        output = scala_items(plan.output())
        return LookupTable(name, plan, tuple((each, each) for each in output), ())
    kind = class_name(plan)
    if kind not in _ROW_BY_ROW or not reads_lookup(plan):
        return None
    table = find_table(plan.child(), catalyst)
    if table is None or any(reads_lookup(query) for query in scala_items(plan.subqueries())):
        return None
    pairs = table.output
    if kind == "Filter":
        conditions = [
            replace_columns(each, pairs, catalyst) for each in conjuncts(plan.condition())
        ]
        return LookupTable(table.name, table.symbol, pairs, (*table.filters, *conditions))
    if kind == "Project":
        values = [
            item.child() if class_name(item) == "Alias" else item
            for item in scala_items(plan.projectList())
        ]
        values = [replace_columns(value, pairs, catalyst) for value in values]
        pairs = tuple(zip(scala_items(plan.output()), values, strict=True))
    return LookupTable(table.name, table.symbol, pairs, table.filters)


def replace_columns(expression: Any, pairs: Sequence[tuple[Any, Any]], catalyst: Catalyst) -> Any:
    """Returns an expression with other expressions in place of columns."""
    for column, value in pairs:
        if expression.semanticEquals(column):
            return value
    children = children_of(expression)
    changed = [replace_columns(child, pairs, catalyst) for child in children]
    if all(new is old for new, old in zip(changed, children, strict=True)):
        return expression
    return expression.withNewChildren(catalyst.sequence(changed))


def symbol_name(plan: Any) -> str | None:
    """Returns the name of a lookup table if a plan is its projection over all keys."""
    if class_name(plan) != "Project" or class_name(plan.child()) != "LogicalRDD":
        return None
    return _mark_of(plan.child())


def _mark_of(leaf: Any) -> str | None:
    name = str(leaf.rdd().name() or "")
    return name.removeprefix(_MARK) if name.startswith(_MARK) else None


def tables_in(plan: Any) -> Iterator[str]:
    """Yields the lookup tables that a plan reads, also in subqueries."""
    if class_name(plan) == "LogicalRDD" and (name := _mark_of(plan)) is not None:
        yield name
    below = [*children_of(plan), *scala_items(plan.subqueries())]
    for each in below:
        yield from tables_in(each)


def reads_lookup(plan: Any) -> bool:
    """Returns whether a plan reads a lookup table."""
    return next(tables_in(plan), None) is not None
