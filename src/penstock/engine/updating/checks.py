"""Checks of the rows of updating transforms: the rows on which SQL fails below all state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from penstock.engine.catalyst.fallible_expressions import find_failures
from penstock.engine.catalyst.logical_plans import Catalyst, named
from penstock.engine.catalyst.spark_plan import class_name, scala_items
from penstock.engine.row_checks.checked_plan import ROW, without_ctes
from penstock.engine.row_checks.result_rows import ResultRows, ResultSearch
from penstock.engine.row_checks.row_checks import Check, CheckSearch
from penstock.engine.updating.hashing import hashes
from penstock.engine.updating.rows import WEIGHT
from penstock.engine.updating.template import leaves_of, rdd_of, table_of
from penstock.plan.node import Node
from penstock.sdk import Operation


@dataclass(frozen=True)
class UpdatingChecks:
    """The search for the checks of one input of an updating transform.

    `plan` is that of the transform over empty tables, `leaf` the table in place of the input, and
    `leaves` are the RDDs of all these tables.
    """

    session: SparkSession
    plan: Any
    leaf: DataFrame
    leaves: frozenset[int]

    @classmethod
    def of(
        cls, node: Node, weighted: Mapping[str, DataFrame], session: SparkSession
    ) -> dict[str, UpdatingChecks]:
        """Returns the search of each input with weights."""
        leaves = leaves_of(weighted, session)
        plan = without_ctes(table_of(node, {**weighted, **leaves}, session))
        rdds = frozenset(map(rdd_of, leaves.values()))
        return {name: cls(session, plan, leaf, rdds) for name, leaf in leaves.items()}

    def find(self, numbered: DataFrame) -> list[Check]:
        """Returns the checks of the input. Reads no data.

        The checks read the rows from `numbered`: the columns of the input, `WEIGHT` and `ROW`.
        """
        search = _Search(self, numbered)
        search.visit(self.plan)
        return search.checks


class _ChangeSearch(CheckSearch):
    """A search for checks up to the next operators that combine changes.

    `leaves` are the RDDs in place of changes.
    """

    leaves: frozenset[int]

    def visit_join(self, plan: Any) -> Any | None:
        sides = [plan.left(), plan.right()]
        if not all(self.leaves.intersection(_rdds(side)) for side in sides):
            return super().visit_join(plan)
        condition = plan.condition()
        for side in sides:
            passing = self.visit(side)
            if passing is not None and condition.isDefined() and find_failures(condition.get()):
                self.check_join(plan, side, passing)
        return None


class _Search(_ChangeSearch):
    """A search for the checks of an input."""

    def __init__(self, checks: UpdatingChecks, numbered: DataFrame) -> None:
        super().__init__(checks.session, checks.leaf, numbered)
        self._rdd, self.leaves = rdd_of(checks.leaf), checks.leaves
        self._catalyst = Catalyst(checks.session)

    def visit(self, plan: Any) -> Any | None:
        if class_name(plan) == "LogicalRDD" and int(plan.rdd().id()) == self._rdd:
            return self._rows(plan)
        return super().visit(plan)

    def reads(self, plan: Any) -> bool:
        return any(rdd == self._rdd for rdd in _rdds(plan))

    def _rows(self, leaf: Any) -> Any:
        """Returns the numbered rows with the attributes of the leaf."""
        *columns, _, row = scala_items(self.identified.output())
        renamed = self._catalyst.rename(columns, scala_items(leaf.output()))
        return self._catalyst.project(self.identified, [*renamed, row])


class _ResultSearch(_ChangeSearch, ResultSearch):
    """A search for the checks of the rows of an operator."""

    def __init__(self, results: ResultRows, numbered: DataFrame, leaves: frozenset[int]) -> None:
        super().__init__(results, numbered)
        self.leaves = leaves


def result_checks(results: ResultRows, numbered: DataFrame, leaves: frozenset[int]) -> list[Check]:
    """Returns the checks of the rows of an operator, up to the next one that combines changes.

    The checks read the rows from `numbered`: their columns, `WEIGHT` and `ROW`. `leaves` are the
    RDDs in place of changes.
    """
    search = _ResultSearch(results, numbered, leaves)
    search.visit(results.above)
    return search.checks


def _rdds(plan: Any) -> list[int]:
    """Returns the RDDs of the tables that a plan reads."""
    leaves = scala_items(plan.collectLeaves())
    return [int(leaf.rdd().id()) for leaf in leaves if class_name(leaf) == "LogicalRDD"]


def added_rows(rows: DataFrame, operation: str | None) -> DataFrame:
    """Returns the weighted rows that are added, with their operation in place of the weight."""
    added = rows.where(named(WEIGHT) > 0)
    if operation is not None:
        added = added.withColumn(operation, lit(Operation.INSERT.value))
    return added.drop(WEIGHT)


def added_numbers(rows: DataFrame) -> pa.Int64Array:
    """Returns the numbers of weighted rows that are added, except those also retracted."""
    fields = [field for field in rows.schema.fields if field.name not in (WEIGHT, ROW)]
    content = hashes([named(field.name) for field in fields], [field.dataType for field in fields])
    columns = rows.select(*content, WEIGHT, ROW).toArrow().columns
    found = list(zip(*(column.to_pylist() for column in columns), strict=True))
    removed = Counter((one, other) for one, other, weight, _ in found if weight < 0)
    added = []
    for one, other, weight, number in sorted(found, key=itemgetter(3)):
        if weight > 0 and removed[one, other]:
            removed[one, other] -= 1
        elif weight > 0:
            added.append(number)
    return pa.array(added, pa.int64())
