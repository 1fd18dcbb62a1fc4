"""Rows that no watermark completes: whether a query's rows are final at the end of the input only.

A watermark completes windows, groups of event times, and outer joins of rows whose times are near
each other. The columns with event times are found by their names, also through aliases. A column
that may have a time counts as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set

from sqlglot import exp

from penstock.sql.equalities import joins_without_equality
from penstock.sql.facts import Facts
from penstock.sql.table_joins import keeps_constant_rows

Columns = Mapping[str, Sequence[str | None]]
"""The columns of relations in order, by the name of the relation in lower case."""

WINDOW_FUNCTIONS = frozenset(
    {"window", "session_window", "window_time", "tumble", "hop", "session"}
)


def needs_whole_input(
    facts: Facts,
    streaming: Set[str],
    times: Set[str] | None,
    columns: Columns,
    grouped: Set[str],
) -> bool:
    """Returns whether rows of a query are final at the end of the input only.

    That is so with ORDER BY, LIMIT, OFFSET or OVER, for subqueries of streams, for joins of streams
    without an equality, for EXCEPT and INTERSECT, for constant rows that are kept, and for groups,
    distinct rows and outer, semi and anti joins without an event time. `times` are the columns of
    the inputs with event times; None stands for unknown columns. `columns` are the columns of
    inputs, as far as they are known, and `grouped` the streams that have groups upstream.
    """
    tree = facts.tree
    if tree is None:
        return False
    queries = tree.find_all(exp.Query)
    if any(query.args.get(key) for query in queries for key in ("order", "limit", "offset")):
        return True
    if tree.find(exp.Window):
        return True
    streams, groups = ({name.lower() for name in names} for names in (streaming, grouped))
    if facts.has_subqueries(frozenset(streaming)) or joins_without_equality(facts, streaming):
        return True
    if keeps_constant_rows(facts, streaming) or _compares_queries(facts, streams):
        return True
    if times is None:
        return False
    names, direct = time_columns(facts, times, columns), _event_times(facts, times, columns)
    return (
        _groups_without_time(facts, streams, names)
        or _is_distinct_without_time(facts, streams, names)
        or any(
            _is_incomplete(facts, join, streams, names, direct) for join in tree.find_all(exp.Join)
        )
        or any(_joins_groups(facts, join, streams, groups) for join in tree.find_all(exp.Join))
    )


def _compares_queries(facts: Facts, streams: Set[str]) -> bool:
    """Returns whether EXCEPT or INTERSECT compares rows of streams."""
    assert facts.tree is not None
    queries = facts.tree.find_all(exp.Except, exp.Intersect)
    return any(map(facts.reading(streams), queries))


def time_columns(facts: Facts, times: Set[str], columns: Columns) -> frozenset[str]:
    """Returns the names that may be columns with event times, in lower case."""
    names = {"window", *(name.lower() for name in times)}
    tree = facts.tree
    if tree is None:
        return frozenset(names)
    aliases = [alias for alias in tree.find_all(exp.Alias) if alias.alias]
    while True:
        found = {alias.alias.lower() for alias in aliases if _has_time(alias.this, names)}
        found |= _renamed(tree, names, columns)
        if found <= names:
            return frozenset(names)
        names |= found


def mentions_time(expression: str, times: Set[str]) -> bool:
    """Returns whether the text of an expression has the name of a column with event times."""
    words = {word.lower() for word in re.findall(r"\w+", expression)}
    return not words.isdisjoint({"window", *(name.lower() for name in times)})


def _has_time(expression: exp.Expr, names: Set[str]) -> bool:
    """Returns whether an expression has a name of a time, or calls a function of windows."""
    identifiers = expression.find_all(exp.Identifier)
    calls = expression.find_all(exp.Anonymous)
    return any(each.name.lower() in names for each in identifiers) or any(
        call.name.lower() in WINDOW_FUNCTIONS for call in calls
    )


def _renamed(tree: exp.Expr, names: Set[str], columns: Columns) -> set[str]:
    """Returns the names after aliases of relations that are other names of `names`.

    All names after an alias are if the columns of the relation are not known.
    """
    found: set[str] = set()
    for alias in tree.find_all(exp.TableAlias):
        new = [column.name.lower() for column in alias.args.get("columns") or ()]
        if not new or _is_of_function(alias):
            continue
        old = _columns_of(alias.parent, columns)
        if old is None or len(old) != len(new):
            found.update(new)
        else:
            found.update(name for name, before in zip(new, old, strict=True) if before in names)
    return found


def _columns_of(relation: exp.Expr | None, columns: Columns) -> Sequence[str | None] | None:
    """Returns the columns of a relation in order; None if they are not known."""
    if isinstance(relation, exp.Table):
        return columns.get(relation.name.lower())
    query = relation.this if isinstance(relation, exp.Subquery | exp.CTE) else None
    if isinstance(query, exp.Query) and not query.is_star:
        return [name.lower() for name in query.named_selects]
    return None


def _is_of_function(alias: exp.Expr) -> bool:
    """Returns whether an alias names the columns of VALUES or of a table function: no times."""
    relation = alias.parent
    if isinstance(relation, exp.Table | exp.Lateral):
        return not isinstance(relation.this, exp.Identifier | exp.Subquery)
    return isinstance(relation, exp.Values)


def _groups_without_time(facts: Facts, streams: Set[str], names: Set[str]) -> bool:
    """Returns whether a query in the tree aggregates a stream without a time in its groups."""
    return any(
        isinstance(query, exp.Select)
        and facts.count_reads_in(query, streams) > 0
        and not any(_has_time(key, names) for key in _group_keys(query))
        for query in facts.aggregating_queries
    )


def _is_distinct_without_time(facts: Facts, streams: Set[str], names: Set[str]) -> bool:
    """Returns whether a query in the tree compares rows of a stream that have no time."""
    assert facts.tree is not None
    queries = [query for query in facts.tree.find_all(exp.Query) if query.args.get("distinct")]
    unions = [query.left for query in queries if isinstance(query, exp.Union)]
    selects = [query for query in queries if not isinstance(query, exp.Union)]
    # Spark does not follow the bounds of windows through UNION.
    compared = [(each, _is_event_time) for each in unions]
    return any(
        not _has_star_with_time(select, names)
        and facts.count_reads_in(select, streams) > 0
        and not any(
            is_time(column.unalias(), names) for column in select.selects if not column.is_star
        )
        for select, is_time in (*compared, *((each, _has_time) for each in selects))
    )


def _has_star_with_time(query: exp.Query, names: Set[str]) -> bool:
    """Returns whether a query selects `*`, and excludes no time."""
    stars = [each.this if isinstance(each, exp.Column) else each for each in query.selects]
    return any(
        isinstance(star, exp.Star)
        and names.isdisjoint(column.name.lower() for column in star.args.get("except_") or ())
        for star in stars
    )


def _group_keys(query: exp.Select) -> Iterator[exp.Expr]:
    """Yields the keys of the groups of a query. A position stands for a column of the output."""
    group = query.args.get("group")
    if group is None:
        return
    if group.args.get("all"):
        yield from query.expressions
    yield group
    for key in group.expressions:
        if isinstance(key, exp.Literal) and key.is_int and int(key.name) <= len(query.expressions):
            yield query.expressions[int(key.name) - 1]


def _is_incomplete(
    facts: Facts, join: exp.Join, streams: Set[str], names: Set[str], direct: Set[str]
) -> bool:
    """Returns whether no time limits an outer, semi or anti join of streams."""
    kind, select = join.kind.upper(), join.parent
    if not (join.side or kind in ("SEMI", "ANTI")) or join.method or not isinstance(
        select, exp.Select
    ):  # fmt: skip
        return False
    if not _joins_streams(facts, join, streams):
        return False
    if kind == "ANTI":
        return True
    if kind == "SEMI":
        names = direct
    on = join.args.get("on")
    conditions = [*_conjuncts(on), *(join.args.get("using") or ())]
    return not any(_limits_time(part, names, direct) for part in conditions)


def _joins_groups(facts: Facts, join: exp.Join, streams: Set[str], groups: Set[str]) -> bool:
    """Returns whether a join is a semi join of groups, which Spark does not compute as a stream."""
    return (
        join.kind.upper() == "SEMI"
        and _joins_streams(facts, join, streams)
        and any(side.find(exp.Group) or facts.count_reads_in(side, groups) for side in _sides(join))
    )


def _joins_streams(facts: Facts, join: exp.Join, streams: Set[str]) -> bool:
    """Returns whether both sides of a join read streams."""
    *left, right = (facts.count_reads_in(side, streams) for side in _sides(join))
    return any(left) and right > 0


def _sides(join: exp.Join) -> Iterator[exp.Expr]:
    """Yields the relations to the left of a join, and then its own."""
    assert join.parent is not None
    select = join.parent.args
    joins = select.get("joins") or []
    source = select.get("from_") or select.get("from")
    yield from (side for side in (source, *joins[: joins.index(join)]) if side is not None)
    yield join.this


def _limits_time(condition: exp.Expr, names: Set[str], direct: Set[str]) -> bool:
    """Returns whether a condition of a join limits the times of rows that match.

    A comparison other than an equality does so for event times, not for bounds of windows.
    """
    if isinstance(condition, exp.EQ | exp.NullSafeEQ | exp.Identifier):
        return _has_time(condition, names)
    operands = [condition.args.get("this"), condition.args.get("expression")]
    if isinstance(condition, exp.Between):
        operands[1] = exp.Tuple(expressions=[condition.args["low"], condition.args["high"]])
    return all(
        any(_is_event_time(column, direct) for column in operand.find_all(exp.Column))
        for operand in operands
        if isinstance(operand, exp.Expr)
    )


def _is_event_time(column: exp.Expr, direct: Set[str]) -> bool:
    return isinstance(column, exp.Column) and column.name.lower() in direct


def _event_times(facts: Facts, times: Set[str], columns: Columns) -> frozenset[str]:
    """Returns the names that may be columns with event times, without those of windows."""
    names = {name.lower() for name in times}
    assert facts.tree is not None
    aliases = [alias for alias in facts.tree.find_all(exp.Alias) if alias.alias]
    calls = {alias.alias.lower() for alias in aliases if alias.find(exp.Anonymous)}
    names |= calls
    while True:
        found = {alias.alias.lower() for alias in aliases if _is_event_time(alias.this, names)}
        found |= _renamed(facts.tree, names, columns)
        if found <= names:
            return frozenset(names)
        names |= found


def _conjuncts(condition: exp.Expr | None) -> Iterator[exp.Expr]:
    if isinstance(condition, exp.And | exp.Paren):
        for part in condition.args.values():
            yield from _conjuncts(part)
    elif isinstance(condition, exp.Expr):
        yield condition
