"""Joins with lookup tables whose rows are looked up by key, in Spark's plans.

A join of a stream with such a table becomes a function over the stream: each row has its key, and
the function appends the row of this key. All that is above and below the join remains as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.functions import lit, struct

from penstock.engine.catalyst.java_trees import children_of, is_deterministic, reads_only
from penstock.engine.catalyst.logical_plans import Catalyst
from penstock.engine.catalyst.spark_plan import analyzed_plan, class_name, conjuncts, scala_items
from penstock.engine.lookups.lookup_errors import SqlLookupError, lookup_error
from penstock.engine.lookups.lookup_symbols import (
    FOUND,
    LookupTable,
    find_table,
    reads_lookup,
    replace_columns,
    symbol_name,
    tables_in,
)
from penstock.engine.row_checks.checked_plan import without_ctes

_KEY, _MATCHES = "_penstock_key", "_penstock_matches"
_INNER = ("Cross", "Inner")
_JOINS = {
    "right": ("Cross", "Inner", "LeftAnti", "LeftOuter", "LeftSemi"),
    "left": ("Cross", "Inner", "RightOuter"),
}
"""The joins by the side of the table: those that keep no row of the table without a match."""


def join_lookups(frame: DataFrame) -> DataFrame:
    """Returns a DataFrame whose joins with lookup tables are lookups. Raises SqlLookupError."""
    if next(tables_in(analyzed_plan(frame)), None) is None:
        return frame
    catalyst = Catalyst(frame.sparkSession)
    return catalyst.frame(_Rewriting(catalyst).visit(without_ctes(frame)))


class _Rewriting:
    """The replacement of the joins of one plan."""

    def __init__(self, catalyst: Catalyst) -> None:
        self._catalyst = catalyst

    def visit(self, plan: Any) -> Any:
        """Returns a plan without lookup tables."""
        name = next(tables_in(plan), None)
        if name is None:
            return plan
        kind = class_name(plan)
        if kind == "Join":
            return self._join(plan, [])
        if kind == "Filter" and class_name(plan.child()) == "Join":
            return self._filter(plan)
        children = children_of(plan)
        in_subquery = any(reads_lookup(query) for query in scala_items(plan.subqueries()))
        if symbol_name(plan) is not None or in_subquery:
            raise lookup_error(
                f'the lookup table "{name}" is read without a join', plan,
                f"Join a stream with it: FROM stream LEFT JOIN {name} ON stream.a = {name}.key. "
                "Single keys are looked up, and no other rows are read.",
            )  # fmt: skip
        visited = [self.visit(child) for child in children]
        return plan.withNewChildren(self._catalyst.sequence(visited))

    def _filter(self, plan: Any) -> Any:
        """Returns a filter above a join. Its conditions on the stream are evaluated first."""
        join, conditions = plan.child(), conjuncts(plan.condition())
        kind, children = class_name(join.joinType()), children_of(join)
        if kind in _INNER and all(map(is_deterministic, conditions)):
            return self._join(join, conditions)
        streams = [child for child in children if find_table(child, self._catalyst) is None]
        below = [each for each in conditions if len(streams) == 1 and _over(each, streams[0])]
        above = [each for each in conditions if each not in below]
        return self._where(self._join(join, below), above)

    def _join(self, join: Any, conditions: Sequence[Any]) -> Any:
        """Returns a join whose result passes further conditions.

        In an outer join these conditions are on the side whose rows are all kept.
        """
        children = children_of(join)
        tables = [find_table(child, self._catalyst) for child in children]
        if all(tables):
            raise lookup_error(
                "a lookup table is joined with another lookup table", join,
                "Join a stream with one of them first.",
            )  # fmt: skip
        if not any(tables):
            return self._join_of_streams(join, conditions)
        side = 0 if tables[0] is not None else 1
        table, stream = tables[side], children[1 - side]
        assert table is not None
        kind = class_name(join.joinType())
        if kind not in _JOINS["left" if side == 0 else "right"]:
            raise lookup_error(
                f"the {_words(kind)} JOIN keeps the rows of the lookup table \"{table.name}\" that "
                "no row of the stream matches, and single keys are looked up", join,
                "Write stream JOIN table, or stream LEFT JOIN table.",
            )  # fmt: skip
        on = conjuncts(join.condition().get()) if join.condition().isDefined() else []
        if kind in _INNER:
            on, conditions = [*on, *conditions], []
        stream = self._where(stream, conditions)
        joined, added = self._looked_up(join, table, stream, on)
        columns = scala_items(stream.output())
        output = [*added, *columns] if side == 0 else [*columns, *added]
        return self._catalyst.project(joined, output)

    def _join_of_streams(self, join: Any, conditions: Sequence[Any]) -> Any:
        """Returns a join with lookup tables below its sides, which read conditions on the side."""
        sides = []
        for child in children_of(join):
            below = [each for each in conditions if reads_lookup(child) and _over(each, child)]
            conditions = [each for each in conditions if each not in below]
            sides.append(self.visit(self._where(child, below)))
        return self._where(join.withNewChildren(self._catalyst.sequence(sides)), conditions)

    def _looked_up(
        self, join: Any, table: LookupTable, stream: Any, on: list[Any]
    ) -> tuple[Any, list[Any]]:
        """Returns a plan with the rows of a stream, and the columns of the table for each row."""
        kind = class_name(join.joinType())
        on = [replace_columns(each, table.output, self._catalyst) for each in on]
        values, rest = self._key_values(join, table, stream, on)
        below = [each for each in rest if kind in _INNER and _over(each, stream)]
        rest = [each for each in rest if each not in below]
        plan = self.visit(self._where(stream, below))
        plan, key = self._catalyst.with_column(plan, struct(*values), _KEY)
        plan, found = self._evaluate(plan, table, key)
        pairs = [(column, self._field(found, column)) for column in table.keys]
        pairs.append((table.found, found))
        expressions = self._catalyst.expressions
        conditions = [
            replace_columns(each, pairs, self._catalyst) for each in (*rest, *table.filters)
        ]
        matches = self._all([expressions.IsNotNull(found), *conditions])
        if kind in (*_INNER, "LeftSemi"):
            plan = self._where(plan, [matches])
        elif kind == "LeftAnti":
            truth = expressions.Literal.TrueLiteral()
            missing = expressions.Not(expressions.EqualNullSafe(matches, truth))
            plan = self._where(plan, [missing])
        if kind in ("LeftSemi", "LeftAnti"):
            return plan, []
        row = [replace_columns(value, pairs, self._catalyst) for _, value in table.output]
        if kind not in _INNER:
            plan, flag = self._catalyst.with_column(plan, self._catalyst.column(matches), _MATCHES)
            row = [self._where_matched(value, flag) for value in row]
        targets = [attribute for attribute, _ in table.output]
        return plan, self._catalyst.rename(row, targets)

    def _key_values(
        self, join: Any, table: LookupTable, stream: Any, on: list[Any]
    ) -> tuple[list[Any], list[Any]]:
        """Returns the value of each column of the key, and the conditions that remain.

        In these the values replace the key, to which they are equal in a matching row.
        """
        rest, values = list(on), []
        for column in table.keys:
            for condition in rest:
                value = _equal_to(condition, column)
                if value is not None and _over(value, stream):
                    values.append(self._catalyst.column(value).alias(column.name()))
                    rest.remove(condition)
                    rest = [
                        replace_columns(each, [(column, value)], self._catalyst) for each in rest
                    ]
                    break
            else:
                raise self._missing_key(join, table, column, on)
        return values, rest

    def _missing_key(
        self, join: Any, table: LookupTable, column: Any, on: list[Any]
    ) -> SqlLookupError:
        """Returns the error of a join that has no value for a column of the key."""
        names = ", ".join(each.name() for each in table.keys)
        hint = (
            f"Write ON stream.a = {table.name}.{column.name()}, with a column of the same type; "
            "further conditions are possible with AND. Rows are looked up by primary key."
        )
        for condition in on:
            sides = children_of(condition)
            if class_name(condition) != "EqualTo":
                continue
            for side in sides:
                if class_name(side) == "Cast" and side.child().semanticEquals(column):
                    type_ = str(column.dataType().sql())
                    return lookup_error(
                        f'the condition of the join casts "{column.name()}", the primary key of '
                        f'the lookup table "{table.name}", to {side.dataType().sql()}', condition,
                        f"Cast the other side: CAST(stream.a AS {type_}) = "
                        f"{table.name}.{column.name()}.",
                    )  # fmt: skip
        others = [each for each in on if class_name(each) in ("EqualTo", "EqualNullSafe")]
        return lookup_error(
            f'the condition of the join has no value for "{column.name()}" of the primary key '
            f'({names}) of the lookup table "{table.name}"',
            others[0] if others else on[0] if on else join, hint,
        )  # fmt: skip

    def _evaluate(self, plan: Any, table: LookupTable, key: Any) -> tuple[Any, Any]:
        """Returns a plan with the found row as a further column, and this column."""
        call = table.call
        udf = self._catalyst.expressions.PythonUDF(
            call.name(), call.func(), call.dataType(), self._catalyst.sequence([key]),
            call.evalType(), True, self._catalyst.expressions.NamedExpression.newExprId(),
        )  # fmt: skip
        (row,) = self._catalyst.types([call])
        _, found = self._catalyst.with_column(plan, lit(None).cast(row), FOUND)
        calls, columns = self._catalyst.sequence([udf]), self._catalyst.sequence([found])
        python = self._catalyst.plans.ArrowEvalPython(calls, columns, plan, call.evalType())
        return python, found

    def _field(self, found: Any, column: Any) -> Any:
        place = found.dataType().fieldIndex(column.name())
        none = self._catalyst.java.scala.Option.empty()
        return self._catalyst.expressions.GetStructField(found, place, none)

    def _where_matched(self, value: Any, flag: Any) -> Any:
        null = self._catalyst.expressions.Literal.create(None, value.dataType())
        return self._catalyst.expressions.If(flag, value, null)

    def _where(self, plan: Any, conditions: Sequence[Any]) -> Any:
        return self._catalyst.plans.Filter(self._all(conditions), plan) if conditions else plan

    def _all(self, conditions: Sequence[Any]) -> Any:
        return reduce(self._catalyst.expressions.And, conditions)


def _over(expression: Any, plan: Any) -> bool:
    """Returns whether an expression has a value for each row of a plan."""
    return is_deterministic(expression) and reads_only(expression, plan)


def _equal_to(condition: Any, column: Any) -> Any | None:
    """Returns the other side if a condition compares a column for equality, or None."""
    if class_name(condition) not in ("EqualTo", "EqualNullSafe"):
        return None
    left, right = children_of(condition)
    if left.semanticEquals(column):
        return right
    return left if right.semanticEquals(column) else None


def _words(kind: str) -> str:
    return {"FullOuter": "FULL", "LeftOuter": "LEFT", "RightOuter": "RIGHT"}.get(kind, kind.upper())
