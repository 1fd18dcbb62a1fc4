"""Rows that no watermark completes: whether a query's rows are final at the end of the input only.

A watermark completes windows, groups of event times, and outer joins of rows whose times are near
each other. `sql.time_lineage` finds the event times. A column that may have a time counts as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from sqlglot import exp

from penstock.sql.equalities import joins_without_equality
from penstock.sql.facts import Facts, parse_facts
from penstock.sql.parsing import conjuncts
from penstock.sql.table_joins import keeps_constant_rows
from penstock.sql.time_lineage import Columns, Kind, TimeLineage

_WITH_METADATA: frozenset[Kind | None] = frozenset({"time", "window", "any"})
"""The kinds of values that Spark follows through UNION and semi joins: no bounds of windows."""


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
    lineage = TimeLineage(facts, times, columns)
    joins = list(tree.find_all(exp.Join))
    return (
        _groups_without_time(facts, streams, lineage)
        or _is_distinct_without_time(facts, streams, lineage)
        or any(_is_incomplete(facts, join, streams, lineage) for join in joins)
        or any(_joins_groups(facts, join, streams, groups) for join in joins)
    )


def _compares_queries(facts: Facts, streams: Set[str]) -> bool:
    """Returns whether EXCEPT or INTERSECT compares rows of streams."""
    assert facts.tree is not None
    queries = facts.tree.find_all(exp.Except, exp.Intersect)
    return any(map(facts.reading(streams), queries))


def time_columns(facts: Facts, times: Set[str], columns: Columns) -> frozenset[str]:
    """Returns the names that may be columns with event times, in lower case."""
    if facts.tree is None:
        return frozenset({"window", *(name.lower() for name in times)})
    return TimeLineage(facts, times, columns).names()


def selected_times(items: Iterable[str], times: Set[str]) -> frozenset[str]:
    """Returns the names of selected columns that may be event times, in lower case.

    `items` are items of SELECT over a relation whose columns `times` are event times.
    """
    facts = parse_facts(f"SELECT {', '.join(items)} FROM `_input`")
    if facts.tree is None:
        return frozenset(name.lower() for name in times)
    found = TimeLineage(facts, times, {}).output(facts.tree)
    return frozenset(name for name, kind in found.items() if kind)


def _groups_without_time(facts: Facts, streams: Set[str], lineage: TimeLineage) -> bool:
    """Returns whether a query in the tree aggregates a stream without a time in its groups."""
    return any(
        isinstance(query, exp.Select)
        and facts.count_reads_in(query, streams) > 0
        and not any(lineage.kind(key, query) for key in _group_keys(query))
        for query in facts.aggregating_queries
    )


def _is_distinct_without_time(facts: Facts, streams: Set[str], lineage: TimeLineage) -> bool:
    """Returns whether a query in the tree compares rows of a stream that have no time."""
    assert facts.tree is not None
    queries = [query for query in facts.tree.find_all(exp.Query) if query.args.get("distinct")]
    return any(
        facts.count_reads_in(compared, streams) > 0
        and not any(
            kind in _WITH_METADATA if compared is not query else kind
            for kind in _kinds_of_items(compared, lineage)
        )
        for query in queries
        for compared in [query.left if isinstance(query, exp.Union) else query]
    )


def _kinds_of_items(query: exp.Expr, lineage: TimeLineage) -> Iterator[Kind | None]:
    """Yields the kinds of the columns of a query, also of those without a known name."""
    yield from lineage.output(query).values()
    if isinstance(query, exp.Select):
        yield from (lineage.kind(item, query) for item in query.expressions)


def _group_keys(query: exp.Select) -> Iterator[exp.Expr]:
    """Yields the keys of the groups of a query. A position stands for a column of the output."""
    group = query.args.get("group")
    if group is None:
        return
    if group.args.get("all"):
        yield from query.expressions
    for key in _parts_of_groups(group):
        if isinstance(key, exp.Literal) and key.is_int and int(key.name) <= len(query.expressions):
            yield query.expressions[int(key.name) - 1]
        else:
            yield key


def _parts_of_groups(group: exp.Expr) -> Iterator[exp.Expr]:
    """Yields the keys of GROUP BY, also those in ROLLUP, CUBE and GROUPING SETS."""
    nested = (exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple)
    keys = list(group.expressions)
    for name in ("rollup", "cube", "grouping_sets"):
        sets = group.args.get(name)
        keys += sets if isinstance(sets, list) else []
    for key in keys:
        if isinstance(key, nested):
            yield from _parts_of_groups(key)
        elif isinstance(key, exp.Expr):
            yield key


def _is_incomplete(facts: Facts, join: exp.Join, streams: Set[str], lineage: TimeLineage) -> bool:
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
    on = join.args.get("on")
    conditions = [*conjuncts(on), *(join.args.get("using") or ())]
    return not any(_limits_time(part, select, lineage, kind == "SEMI") for part in conditions)


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


def _limits_time(
    condition: exp.Expr, select: exp.Select, lineage: TimeLineage, is_semi: bool
) -> bool:
    """Returns whether a condition of a join limits the times of rows that match.

    A comparison other than an equality does so for event times, not for bounds of windows.
    """
    condition = condition.unnest()
    if isinstance(condition, exp.EQ | exp.NullSafeEQ | exp.Identifier):
        is_column = isinstance(condition, exp.Identifier)
        sides = [condition] if is_column else list(condition.iter_expressions())
        kinds = {lineage.kind(side, select) for side in sides}
        return bool(kinds & _WITH_METADATA if is_semi else kinds - {None})
    operands = [condition.args.get("this"), condition.args.get("expression")]
    if isinstance(condition, exp.Between):
        operands[1] = exp.Tuple(expressions=[condition.args["low"], condition.args["high"]])
    return all(
        any(_is_event_time(part, select, lineage) for part in _terms(operand))
        for operand in operands
        if isinstance(operand, exp.Expr)
    )


def _is_event_time(column: exp.Expr, select: exp.Select, lineage: TimeLineage) -> bool:
    return isinstance(column, exp.Column) and lineage.kind(column, select) in _WITH_METADATA


def _terms(operand: exp.Expr) -> Iterator[exp.Expr]:
    """Yields the columns of sums and differences, as `at + INTERVAL 1 HOUR`, not of functions."""
    if isinstance(operand, exp.Tuple):
        for part in operand.expressions:
            yield from _terms(part)
    elif isinstance(operand, exp.Add | exp.Sub):
        yield from _terms(operand.left)
        yield from _terms(operand.right)
    elif isinstance(operand, exp.Paren | exp.Cast):
        yield from _terms(operand.this)
    else:
        yield operand
