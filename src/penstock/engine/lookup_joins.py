"""Joins with lookup tables whose rows are looked up by key, in Spark's plans.

Such a table is a symbol: a projection of `lookup(key)` over all keys, which are not known. A join
of a stream with it becomes a function over the stream: each row has its key, and the function
appends the row of this key. All that is above and below the join remains as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit, struct
from pyspark.sql.pandas.functions import arrow_udf

from penstock.core.errors import PlanError
from penstock.engine.checked_plan import without_ctes
from penstock.engine.columns import to_spark
from penstock.engine.key_lookup import KeyLookup
from penstock.engine.spark_plan import analyzed_plan, class_name, conjuncts, scala_items
from penstock.engine.updating.catalyst import Catalyst, named

_MARK = "penstock lookup "
"""The start of the name of the RDD that stands for all keys of a table."""
_FOUND, _KEY, _MATCHES = "_penstock_found", "_penstock_key", "_penstock_matches"
_INNER = ("Cross", "Inner")
_ROW_BY_ROW = ("Filter", "Project", "ResolvedHint", "SubqueryAlias", "View")
"""The operators that may be above a table: its rows remain single."""
_JOINS = {
    "right": ("Cross", "Inner", "LeftAnti", "LeftOuter", "LeftSemi"),
    "left": ("Cross", "Inner", "RightOuter"),
}
"""The joins by the side of the table: those that keep no row of the table without a match."""


class LookupJoinError(PlanError):
    """An error of the SQL that reads a lookup table. `index` and `fragment` are its place there."""

    index: int = 0
    fragment: str = ""


def lookup_table(lookup: KeyLookup, session: SparkSession) -> DataFrame:
    """Returns a lookup table for queries whose joins `join_lookups` replaces. Reads no data."""
    keys = to_spark(lookup.keys)
    everything = session.createDataFrame(session.sparkContext.emptyRDD(), keys)
    analyzed_plan(everything).rdd().setName(f"{_MARK}{lookup.spool.node}")
    make_udf: Any = arrow_udf
    found = make_udf(_typed(lookup), to_spark(lookup.rows)).asNondeterministic()
    key_columns = [named(name) for name in keys.names]
    symbol = everything.select(*key_columns, found(struct(*key_columns)).alias(_FOUND))
    columns = [
        named(name) if name in keys.names else named(_FOUND).getField(name).alias(name)
        for name in lookup.rows.names
    ]
    return symbol.select(*columns)


def _typed(lookup: KeyLookup) -> Callable[[Iterator[pa.Array]], Iterator[pa.Array]]:
    """Returns the function of a lookup with the type hints by which Spark selects its kind."""

    def look_up(arrays: Iterator[pa.Array]) -> Iterator[pa.Array]:
        return lookup(arrays)

    return look_up


def join_lookups(frame: DataFrame) -> DataFrame:
    """Returns a DataFrame whose joins with lookup tables are lookups. Raises LookupJoinError."""
    if next(_tables_in(analyzed_plan(frame)), None) is None:
        return frame
    catalyst = Catalyst(frame.sparkSession)
    return catalyst.frame(_Rewriting(catalyst).visit(without_ctes(frame)))


@dataclass(frozen=True)
class _Table:
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


class _Rewriting:
    """The replacement of the joins of one plan."""

    def __init__(self, catalyst: Catalyst) -> None:
        self._catalyst = catalyst

    def visit(self, plan: Any) -> Any:
        """Returns a plan without lookup tables."""
        name = next(_tables_in(plan), None)
        if name is None:
            return plan
        kind = class_name(plan)
        if kind == "Join":
            return self._join(plan, [])
        if kind == "Filter" and class_name(plan.child()) == "Join":
            return self._filter(plan)
        children = scala_items(plan.children())
        in_subquery = any(_reads(query) for query in scala_items(plan.subqueries()))
        if _symbol_name(plan) is not None or in_subquery:
            raise _error(
                f'the lookup table "{name}" is read without a join', plan,
                f"Join a stream with it: FROM stream LEFT JOIN {name} ON stream.a = {name}.key. "
                "Single keys are looked up, and no other rows are read.",
            )  # fmt: skip
        visited = [self.visit(child) for child in children]
        return plan.withNewChildren(self._catalyst.sequence(visited))

    def _filter(self, plan: Any) -> Any:
        """Returns a filter above a join. Its conditions on the stream are evaluated first."""
        join, conditions = plan.child(), conjuncts(plan.condition())
        kind, children = class_name(join.joinType()), scala_items(join.children())
        if kind in _INNER and all(each.deterministic() for each in conditions):
            return self._join(join, conditions)
        streams = [child for child in children if self._table(child) is None]
        below = [each for each in conditions if len(streams) == 1 and _over(each, streams[0])]
        above = [each for each in conditions if each not in below]
        return self._where(self._join(join, below), above)

    def _join(self, join: Any, conditions: Sequence[Any]) -> Any:
        """Returns a join whose result passes further conditions.

        In an outer join these conditions are on the side whose rows are all kept.
        """
        children = scala_items(join.children())
        tables = [self._table(child) for child in children]
        if all(tables):
            raise _error(
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
            raise _error(
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
        for child in scala_items(join.children()):
            below = [each for each in conditions if _reads(child) and _over(each, child)]
            conditions = [each for each in conditions if each not in below]
            sides.append(self.visit(self._where(child, below)))
        return self._where(join.withNewChildren(self._catalyst.sequence(sides)), conditions)

    def _looked_up(
        self, join: Any, table: _Table, stream: Any, on: list[Any]
    ) -> tuple[Any, list[Any]]:
        """Returns a plan with the rows of a stream, and the columns of the table for each row."""
        kind = class_name(join.joinType())
        on = [self._replaced(each, table.output) for each in on]
        values, rest = self._key_values(join, table, stream, on)
        below = [each for each in rest if kind in _INNER and _over(each, stream)]
        rest = [each for each in rest if each not in below]
        plan = self.visit(self._where(stream, below))
        plan, key = self._catalyst.with_column(plan, struct(*values), _KEY)
        plan, found = self._evaluate(plan, table, key)
        pairs = [(column, self._field(found, column)) for column in table.keys]
        pairs.append((table.found, found))
        expressions = self._catalyst.expressions
        conditions = [self._replaced(each, pairs) for each in (*rest, *table.filters)]
        matches = self._all([expressions.IsNotNull(found), *conditions])
        if kind in (*_INNER, "LeftSemi"):
            plan = self._where(plan, [matches])
        elif kind == "LeftAnti":
            truth = expressions.Literal.TrueLiteral()
            missing = expressions.Not(expressions.EqualNullSafe(matches, truth))
            plan = self._where(plan, [missing])
        if kind in ("LeftSemi", "LeftAnti"):
            return plan, []
        row = [self._replaced(value, pairs) for _, value in table.output]
        if kind not in _INNER:
            plan, flag = self._catalyst.with_column(plan, self._catalyst.column(matches), _MATCHES)
            row = [self._where_matched(value, flag) for value in row]
        targets = [attribute for attribute, _ in table.output]
        return plan, self._catalyst.rename(row, targets)

    def _key_values(
        self, join: Any, table: _Table, stream: Any, on: list[Any]
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
                    rest = [self._replaced(each, [(column, value)]) for each in rest]
                    break
            else:
                raise self._missing_key(join, table, column, on)
        return values, rest

    def _missing_key(self, join: Any, table: _Table, column: Any, on: list[Any]) -> LookupJoinError:
        """Returns the error of a join that has no value for a column of the key."""
        names = ", ".join(each.name() for each in table.keys)
        hint = (
            f"Write ON stream.a = {table.name}.{column.name()}, with a column of the same type; "
            "further conditions are possible with AND. Rows are looked up by primary key."
        )
        for condition in on:
            sides = scala_items(condition.children())
            if class_name(condition) != "EqualTo":
                continue
            for side in sides:
                if class_name(side) == "Cast" and side.child().semanticEquals(column):
                    type_ = str(column.dataType().sql())
                    return _error(
                        f'the condition of the join casts "{column.name()}", the primary key of '
                        f'the lookup table "{table.name}", to {side.dataType().sql()}', condition,
                        f"Cast the other side: CAST(stream.a AS {type_}) = "
                        f"{table.name}.{column.name()}.",
                    )  # fmt: skip
        others = [each for each in on if class_name(each) in ("EqualTo", "EqualNullSafe")]
        return _error(
            f'the condition of the join has no value for "{column.name()}" of the primary key '
            f'({names}) of the lookup table "{table.name}"',
            others[0] if others else on[0] if on else join, hint,
        )  # fmt: skip

    def _evaluate(self, plan: Any, table: _Table, key: Any) -> tuple[Any, Any]:
        """Returns a plan with the found row as a further column, and this column."""
        call = table.call
        udf = self._catalyst.expressions.PythonUDF(
            call.name(), call.func(), call.dataType(), self._catalyst.sequence([key]),
            call.evalType(), True, self._catalyst.expressions.NamedExpression.newExprId(),
        )  # fmt: skip
        (row,) = self._catalyst.types([call])
        _, found = self._catalyst.with_column(plan, lit(None).cast(row), _FOUND)
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

    def _replaced(self, expression: Any, pairs: Sequence[tuple[Any, Any]]) -> Any:
        """Returns an expression with other expressions in place of columns."""
        for column, value in pairs:
            if expression.semanticEquals(column):
                return value
        children = scala_items(expression.children())
        changed = [self._replaced(child, pairs) for child in children]
        if all(new is old for new, old in zip(changed, children, strict=True)):
            return expression
        return expression.withNewChildren(self._catalyst.sequence(changed))

    def _table(self, plan: Any) -> _Table | None:
        """Returns a plan that is a lookup table under projections and filters; None otherwise."""
        name = _symbol_name(plan)
        if name is not None:
            output = scala_items(plan.output())
            return _Table(name, plan, tuple((each, each) for each in output), ())
        kind = class_name(plan)
        if kind not in _ROW_BY_ROW or not _reads(plan):
            return None
        table = self._table(plan.child())
        if table is None or any(_reads(query) for query in scala_items(plan.subqueries())):
            return None
        pairs = table.output
        if kind == "Filter":
            conditions = [self._replaced(each, pairs) for each in conjuncts(plan.condition())]
            return _Table(table.name, table.symbol, pairs, (*table.filters, *conditions))
        if kind == "Project":
            values = [
                item.child() if class_name(item) == "Alias" else item
                for item in scala_items(plan.projectList())
            ]
            values = [self._replaced(value, pairs) for value in values]
            pairs = tuple(zip(scala_items(plan.output()), values, strict=True))
        return _Table(table.name, table.symbol, pairs, table.filters)


def _symbol_name(plan: Any) -> str | None:
    """Returns the name of a lookup table if a plan is its projection over all keys."""
    if class_name(plan) != "Project" or class_name(plan.child()) != "LogicalRDD":
        return None
    return _mark_of(plan.child())


def _mark_of(leaf: Any) -> str | None:
    name = str(leaf.rdd().name() or "")
    return name.removeprefix(_MARK) if name.startswith(_MARK) else None


def _tables_in(plan: Any) -> Iterator[str]:
    """Yields the lookup tables that a plan reads, also in subqueries."""
    if class_name(plan) == "LogicalRDD" and (name := _mark_of(plan)) is not None:
        yield name
    below = [*scala_items(plan.children()), *scala_items(plan.subqueries())]
    for each in below:
        yield from _tables_in(each)


def _reads(plan: Any) -> bool:
    return next(_tables_in(plan), None) is not None


def _over(expression: Any, plan: Any) -> bool:
    """Returns whether an expression has a value for each row of a plan."""
    return bool(expression.deterministic()) and bool(
        expression.references().subsetOf(plan.outputSet())
    )


def _equal_to(condition: Any, column: Any) -> Any | None:
    """Returns the other side if a condition compares a column for equality, or None."""
    if class_name(condition) not in ("EqualTo", "EqualNullSafe"):
        return None
    left, right = scala_items(condition.children())
    if left.semanticEquals(column):
        return right
    return left if right.semanticEquals(column) else None


def _words(kind: str) -> str:
    return {"FullOuter": "FULL", "LeftOuter": "LEFT", "RightOuter": "RIGHT"}.get(kind, kind.upper())


def _error(message: str, place: Any, hint: str) -> LookupJoinError:
    """Returns an error at the place of an expression or an operator in SQL."""
    error = LookupJoinError(message, code="lookup-join", hint=hint)
    origin = place.origin()
    text, start, stop = origin.sqlText(), origin.startIndex(), origin.stopIndex()
    if text.isDefined() and start.isDefined() and stop.isDefined():
        error.index = int(start.get())
        error.fragment = str(text.get())[error.index : int(stop.get()) + 1]
    return error
