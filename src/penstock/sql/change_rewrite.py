"""Stateless SQL over changes: the operation column is kept, and a condition deletes."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from sqlglot import exp

from penstock.core.errors import PlanError
from penstock.sql.determinism import deterministic, has_chance
from penstock.sql.facts import Facts
from penstock.sql.parsing import DIALECT
from penstock.sql.time_lineage import calendar_time

_CODES = ("i", "ub", "u", "d")
"""The operations of rows."""
_WINDOWS = ("window", "session_window")
"""Functions of Spark that drop rows whose time is null."""
_ANY_TIME = "CAST('1970-01-01' AS TIMESTAMP)"


class Rewritten(NamedTuple):
    """A query over changes. Unless it is `required`, the original query is valid as well."""

    sql: str
    required: bool


def rewrite_for_changes(
    facts: Facts, changing: Collection[str], operation: str, *, complete: bool = False
) -> Rewritten | None:
    """Returns a query whose rows have the operation column; None if the query stays as it is.

    `changing` are the relations whose rows are changes; the operation is their last column. An
    update or a delete that does not meet the condition of WHERE is a delete, because the row before
    may have met it; if changes are `complete`, it is dropped, as the row before is filtered itself.
    A window has the condition that its time is not null.
    Rows of UNION ALL that are no changes are inserts.
    """
    if facts.tree is None:
        return None
    tree = facts.tree.copy()
    rewriting = _Rewriting({name.lower() for name in changing}, operation, complete)
    if not rewriting.rewrite(tree) or not rewriting.changed:
        return None
    return Rewritten(tree.sql(dialect=DIALECT), rewriting.required)


def filters_by_chance(facts: Facts) -> bool:
    """Returns whether a condition of WHERE differs between two evaluations of the same row."""
    wheres = facts.tree.find_all(exp.Where) if facts.tree is not None else ()
    return any(has_chance(where.sql(dialect=DIALECT)) for where in wheres)


def _is_one_of(value: exp.Expr, codes: Collection[str]) -> exp.Expr:
    return exp.In(this=value.copy(), expressions=[exp.Literal.string(code) for code in codes])


class _Rewriting:
    """The rewriting of one query, in place."""

    def __init__(self, changing: set[str], operation: str, complete: bool) -> None:
        self._changing, self._operation, self._complete = changing, operation, complete
        self.changed = self.required = False

    def rewrite(self, query: exp.Expr) -> bool:
        """Rewrites a query and returns whether its rows are changes."""
        with_ = query.args.get("with_") or query.args.get("with")
        for cte in with_.expressions if with_ is not None else ():
            if self.rewrite(cte.this):
                self._changing.add(cte.alias.lower())
            else:
                self._changing.discard(cte.alias.lower())
        if isinstance(query, exp.Subquery):
            return self.rewrite(query.this)
        if isinstance(query, exp.Union):
            return self._rewrite_union(query)
        return isinstance(query, exp.Select) and self._rewrite_select(query)

    def _rewrite_union(self, union: exp.Union) -> bool:
        sides = [side for side in (union.left, union.right) if side is not None]
        are_changes = [self.rewrite(side) for side in sides]
        if not any(are_changes):
            return False
        for side, is_change in zip(sides, are_changes, strict=True):
            select = side.this if isinstance(side, exp.Subquery) else side
            if not is_change and isinstance(select, exp.Select):
                self._append(select, exp.Literal.string("i"))
        return True

    def _rewrite_select(self, select: exp.Select) -> bool:
        from_ = select.args.get("from_") or select.args.get("from")
        relations = [from_, *(select.args.get("joins") or ())]
        found = [self._change(relation) for relation in relations if relation]
        names = [name for name in found if name is not None]
        if len(names) != 1:
            return False
        column = exp.column(self._operation, table=names[0] or None, quoted=True)
        output = next(
            (each for each in select.expressions if each.alias_or_name == self._operation), None
        )
        star = next((each for each in select.expressions if self._has_operation(each, names)), None)
        if _require_times(select, complete=self._complete):
            self.changed = True
        where = select.args.get("where")
        is_timeless = where is None or deterministic(where.sql(dialect=DIALECT))
        if where is None or (self._complete and is_timeless):
            if output is None and star is None and not self._is_excluded(select):
                self._append(select, column)
            return True
        if output is None and self._is_excluded(select):
            return True
        if star is not None and output is None:
            excluded = [exp.to_identifier(self._operation, quoted=True)]
            wildcard = star.this if isinstance(star, exp.Column) else star
            wildcard.set("except_", [*(wildcard.args.get("except_") or ()), *excluded])
        deleted = ("u", "d") if is_timeless else ("ub", "u", "d")
        self._filter(select, where, column, output, deleted)
        return True

    def _change(self, relation: exp.Expr) -> str | None:
        """Returns the name of a relation whose rows are changes; None for others."""
        source = relation.this
        if isinstance(source, exp.Table):
            if source.name.lower() not in self._changing:
                return None
            self._name_column(source)
            return str(source.alias_or_name)
        if isinstance(source, exp.Subquery) and self.rewrite(source):
            return str(source.alias)
        return None

    def _name_column(self, table: exp.Table) -> None:
        """Adds the operation to the names that the query gives to the columns of a table."""
        alias = table.args.get("alias")
        names = [column.name for column in alias.columns] if alias is not None else []
        if self._operation in names[:-1]:
            raise PlanError(
                f'expected the operation column "{self._operation}" as the last column',
                code="operation-column",
                hint="Remove the column from the table: changes have it without a declaration.",
            )
        if alias is not None and names and self._operation not in names:
            alias.append("columns", exp.to_identifier(self._operation, quoted=True))
            self.changed = self.required = True

    def _has_operation(self, expression: exp.Expr, names: list[str]) -> bool:
        """Returns whether an expression is a wildcard that contains the operation column."""
        is_star = isinstance(expression, exp.Star)
        wildcard = expression.this if isinstance(expression, exp.Column) else expression
        if not isinstance(wildcard, exp.Star) or wildcard.args.get("except_"):
            return False
        return is_star or expression.text("table").lower() in map(str.lower, names)

    def _is_excluded(self, select: exp.Select) -> bool:
        """Returns whether a wildcard excludes the operation column."""
        stars = [star for each in select.expressions for star in each.find_all(exp.Star)]
        excluded = [each for star in stars for each in star.args.get("except_") or ()]
        return any(each.name == self._operation for each in excluded)

    def _filter(
        self,
        select: exp.Select,
        where: exp.Expr,
        column: exp.Expr,
        output: exp.Expr | None,
        deleted: Collection[str],
    ) -> None:
        """Keeps rows with one of the operations that do not meet the condition, as deletes."""
        condition = where.this
        value = output.unalias() if output is not None else column
        passes = exp.Coalesce(this=condition.copy(), expressions=[exp.false()])
        kept = exp.Case(
            ifs=[
                exp.If(this=passes, true=value.copy()),
                exp.If(this=_is_one_of(value, deleted), true=exp.Literal.string("d")),
            ],
            default=value.copy(),
        )
        dropped = _is_one_of(value, [code for code in _CODES if code not in deleted])
        # A row with an unknown operation becomes a dead letter downstream.
        unknown = exp.Coalesce(this=exp.not_(dropped), expressions=[exp.true()])
        where.set("this", exp.or_(exp.paren(condition.copy()), unknown))
        if output is not None:
            output.replace(exp.alias_(kept, self._operation, quoted=True))
        else:
            self._append(select, kept)
        self.changed = True

    def _append(self, select: exp.Select, value: exp.Expr) -> None:
        select.append("expressions", exp.alias_(value, self._operation, quoted=True))
        self.changed = True


def _require_times(select: exp.Select, *, complete: bool) -> bool:
    """Adds the conditions of windows to WHERE, and returns whether there are any.

    Spark drops rows without a time below `window`. Unless changes are `complete`, such rows get
    another time, to become deletes.
    """
    windows = [
        call.expressions[0]
        for call in select.find_all(exp.Anonymous)
        if call.name.lower() in _WINDOWS and call.expressions and call.parent_select is select
    ]
    times = [] if complete else list(windows)
    for struct in select.find_all(exp.Struct):
        if struct.parent_select is select and (time := calendar_time(struct)) is not None:
            times.append(time)
    has_time = {
        time.sql(dialect=DIALECT): exp.not_(exp.Is(this=time.copy(), expression=exp.null()))
        for time in times
    }
    for time in [] if complete else windows:
        other: exp.Expr = exp.maybe_parse(_ANY_TIME, dialect=DIALECT)
        time.replace(exp.Coalesce(this=time.copy(), expressions=[other]))
    if has_time:
        select.where(*has_time.values(), copy=False)
    return bool(has_time)
