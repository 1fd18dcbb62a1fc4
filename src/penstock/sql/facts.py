"""Facts of a SQL query: its relations, and state between batches."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from functools import cached_property, lru_cache

from sqlglot import exp

from penstock.sql.determinism import deterministic
from penstock.sql.functions import AGGREGATES
from penstock.sql.parsing import DIALECT, parse_sql
from penstock.sql.reads import count_reads, reading_parts
from penstock.sql.text.calls import called_functions
from penstock.sql.user_functions import NO_FUNCTIONS, UserFunctions

_WINDOW_FUNCTIONS = frozenset({"window", "session_window", "window_time"})
_STATEFUL = (
    exp.AggFunc, exp.Group, exp.Distinct, exp.Window, exp.Limit, exp.Order, exp.Except,
    exp.Intersect, exp.Qualify, exp.Offset, exp.Having, exp.Fetch, exp.TableSample, exp.Pivot,
)  # fmt: skip
_RELATIONS = (exp.From, exp.Join, exp.CTE, exp.With, exp.Query)
"""The parents of a query that is a relation, not a value."""
_WINDOW = re.compile(r"(?<!`)\b(window\b(?!\s+\w+\s+AS\s*\()|session\b(?=\s*\())", re.IGNORECASE)
"""The names `window` and `session` of windows, which sqlglot parses as clauses."""
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Facts:
    """Facts of one SQL query. `tree` is None if sqlglot cannot parse the query.

    Without a tree the facts are conservative: the query reads every known name in its text and
    is stateful. Spark reports syntax errors.
    """

    text: str
    tree: exp.Expr | None
    functions: UserFunctions = NO_FUNCTIONS

    def relations(self, known: frozenset[str]) -> frozenset[str]:
        """Returns the relations that the query reads, spelled as in `known` whatever their case."""
        if self.tree is None:
            words = {word.lower() for word in _WORD.findall(self.text)}
            return frozenset(name for name in known if name.lower() in words)
        names = {table.name for table in self._tables(self.tree)}
        if names <= known:
            return frozenset(names)
        canonical = {name.lower(): name for name in known}
        return frozenset(canonical.get(name.lower(), name) for name in names)

    def count_reads(self, name: str) -> int:
        """Returns the number of times that the query reads a relation."""
        return 1 if self.tree is None else self._counts[name.lower()]

    def stateful(self, streaming: frozenset[str]) -> bool:
        """Returns whether the query keeps state of the `streaming` relations between batches."""
        if self.tree is None:
            return True
        streams = {name.lower() for name in streaming}
        return self._compares_rows(streams) or self._joins_streams(streams)

    def only_joins(self, streaming: frozenset[str]) -> bool:
        """Returns whether a stateful query has no state but that of inner joins."""
        if self.tree is None:
            return False
        streams = {name.lower() for name in streaming}
        return not self._compares_rows(streams) and not any(
            join.side or join.kind in ("SEMI", "ANTI") for join in self.tree.find_all(exp.Join)
        )

    @property
    def calls_windows(self) -> bool:
        """Whether the query calls a window function of event time."""
        return not called_functions(self.text).isdisjoint(_WINDOW_FUNCTIONS)

    def has_subqueries(self, streaming: frozenset[str]) -> bool:
        """Returns whether expressions have subqueries of `streaming` relations."""
        streams = {name.lower() for name in streaming}
        return any(map(self.reading(streams), self.subqueries)) if self.tree is not None else False

    @property
    def simply_aggregates(self) -> bool:
        """Whether the query is one aggregation whose groups are never removed from its result.

        Spark computes it as a stream of new results.
        """
        if not isinstance(self.tree, exp.Select) or len(list(self.tree.find_all(exp.Select))) > 1:
            return False
        others = (exp.Distinct, exp.Having, exp.Window, exp.Limit, exp.Order, exp.Join, exp.Qualify)
        return self.tree.find(*others) is None

    @property
    def sorts_without_limit(self) -> bool:
        """Whether the query sorts all its rows."""
        args = {} if self.tree is None else self.tree.args
        return bool(args.get("order")) and not (args.get("limit") or args.get("offset"))

    @property
    def first_rows(self) -> int | None:
        """The number of rows of a query that keeps the first rows of its input: a LIMIT alone."""
        if not isinstance(self.tree, exp.Select) or self.tree.find(exp.Join):
            return None
        limit = self.tree.args.get("limit")
        count = getattr(limit, "expression", None) or getattr(limit, "args", {}).get("count")
        others = (each for each in self.tree.find_all(*_STATEFUL) if each is not limit)
        if any(others) or self._aggregates or not isinstance(count, exp.Literal):
            return None
        return int(count.this) if count.is_int else None

    def describe_state(self, streaming: frozenset[str]) -> tuple[str, ...]:
        """Returns descriptions of the state of a stateful query."""
        if self.tree is None:
            return ()
        streams = {name.lower() for name in streaming}
        state = []
        if self._joins_streams(streams):
            state.append("rows of both sides of a join")
        if self.tree.find(exp.AggFunc, exp.Group) or self._aggregates:
            state.append("groups")
        if self.tree.find(exp.Distinct):
            state.append("distinct rows")
        return tuple(state)

    @cached_property
    def deterministic(self) -> bool:
        """Whether the same rows always have the same result."""
        return deterministic(self.text, functions=self.functions)

    @cached_property
    def ctes(self) -> dict[str, exp.Expr]:
        """The common table expressions, by their names in lower case."""
        assert self.tree is not None
        return {cte.alias.lower(): cte.this for cte in self.tree.find_all(exp.CTE)}

    def _tables(self, tree: exp.Expr) -> Iterator[exp.Table]:
        for table in tree.find_all(exp.Table):
            if table.name and table.name.lower() not in self.ctes:
                yield table

    @cached_property
    def stateful_queries(self) -> tuple[exp.Expr, ...]:
        """The queries in the tree that aggregate, sort or compare rows with other rows."""
        assert self.tree is not None
        nodes = (*filter(_is_stateful, self.tree.find_all(*_STATEFUL)), *self._aggregates)
        scopes = (node.find_ancestor(exp.Select, exp.SetOperation) for node in nodes)
        queries = [scope if scope is not None else self.tree for scope in scopes]
        queries += [union for union in self.tree.find_all(exp.Union) if union.args.get("distinct")]
        if not queries and not self._aggregate_names.isdisjoint(called_functions(self.text)):
            queries.append(self.tree)
        return tuple(queries)

    @property
    def _aggregate_names(self) -> frozenset[str]:
        return AGGREGATES | self.functions.aggregates

    @cached_property
    def _aggregates(self) -> tuple[exp.Expr, ...]:
        """The calls of aggregate functions that sqlglot has no class for."""
        assert self.tree is not None
        calls = self.tree.find_all(exp.Anonymous)
        unknown = [call for call in calls if call.name.lower() in self._aggregate_names]
        return (*unknown, *(any_ for any_ in self.tree.find_all(exp.Any) if not _is_pattern(any_)))

    @cached_property
    def aggregating_queries(self) -> tuple[exp.Expr, ...]:
        """The queries in the tree that aggregate their rows, also those without GROUP BY."""
        assert self.tree is not None
        calls = [call for call in self.tree.find_all(exp.AggFunc, exp.Group) if not _is_over(call)]
        nodes = (*calls, *(call for call in self._aggregates if not _is_over(call)))
        scopes = (node.find_ancestor(exp.Select) for node in nodes)
        return tuple({id(scope): scope for scope in scopes if scope is not None}.values())

    def count_reads_in(self, tree: exp.Expr, streams: Set[str]) -> int:
        """Returns the number of reads of streams, by name in lower case, in a part of the tree."""
        counts = count_reads(tree, self.ctes)
        return sum(counts[name] for name in streams)

    def reading(self, streams: Set[str]) -> Callable[[exp.Expr], bool]:
        """Returns the condition that a part of the tree reads streams, by name in lower case."""
        assert self.tree is not None
        return reading_parts(self.tree, self.ctes, streams)

    def reads_relations(self, tree: exp.Expr, seen: frozenset[str] = frozenset()) -> bool:
        """Returns whether a part of the tree reads relations, not only constants.

        `seen` are the common table expressions around the part: one may read itself.
        """
        tables = {table.name.lower() for table in tree.find_all(exp.Table) if table.name} - seen
        return any(
            name not in self.ctes or self.reads_relations(self.ctes[name], seen | {name})
            for name in tables
        )

    @cached_property
    def subqueries(self) -> tuple[exp.Expr, ...]:
        """The queries in conditions and expressions, which compare rows with other rows."""
        assert self.tree is not None
        return tuple(
            query
            for query in self.tree.find_all(exp.Select, exp.SetOperation)
            if query.parent is not None and not _is_relation(query)
        )

    @cached_property
    def _counts(self) -> Counter[str]:
        """The number of reads of each relation, by name in lower case."""
        assert self.tree is not None
        return count_reads(self.tree, self.ctes)

    def _compares_rows(self, streams: set[str]) -> bool:
        """Returns whether a query in the tree compares rows of streams with other rows."""
        return any(map(self.reading(streams), (*self.stateful_queries, *self.subqueries)))

    def _joins_streams(self, streams: set[str]) -> bool:
        assert self.tree is not None
        joined = {
            id(join.parent): join.parent
            for join in self.tree.find_all(exp.Join, exp.Lateral)
            if join.parent is not None
        }
        is_reading = self.reading(streams)
        return any(
            sum(1 for side in _sides(parent) if is_reading(side)) > 1
            if isinstance(parent, exp.Select)
            else self.count_reads_in(parent, streams) > 1
            for parent in joined.values()
        )


def _sides(select: exp.Select) -> Iterator[exp.Expr]:
    """Yields the relations that a query joins."""
    source = select.args.get("from_") or select.args.get("from")
    sides = [source, *(select.args.get("joins") or ()), *(select.args.get("laterals") or ())]
    return (side for side in sides if side is not None)


def _is_stateful(node: exp.Expr) -> bool:
    """Returns whether a node of a stateful class compares rows: not UNPIVOT, not a percentage."""
    return not (
        (isinstance(node, exp.Pivot) and node.args.get("unpivot"))
        or (isinstance(node, exp.TableSample) and node.args.get("percent"))
    )


def _is_over(call: exp.Expr) -> bool:
    """Returns whether a call is one of a window function, with OVER."""
    parent = call.parent
    while isinstance(parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
        parent = parent.parent
    return isinstance(parent, exp.Window)


def _is_pattern(any_: exp.Any) -> bool:
    """Returns whether ANY belongs to LIKE ANY and is not the function `any`."""
    return isinstance(any_.parent, exp.Like | exp.ILike | exp.RegexpLike)


def _is_relation(query: exp.Expr) -> bool:
    """Returns whether a query is a relation that another one reads, not a value or condition.

    A LATERAL query is none: it is computed for each row of another relation.
    """
    parent = query.parent
    while isinstance(parent, exp.Subquery | exp.Paren):
        parent = parent.parent
    return parent is None or isinstance(parent, _RELATIONS)


@lru_cache(maxsize=512)
def parse_facts(
    text: str, dialect: str = DIALECT, functions: UserFunctions = NO_FUNCTIONS
) -> Facts:
    """Returns the facts of a SQL query in a dialect of sqlglot. Never raises.

    The tree is shared: copy it before a change.
    """
    tree = parse_sql(_WINDOW.sub(r"`\1`", text) if dialect == DIALECT else text, dialect)
    return Facts(text, tree if isinstance(tree, exp.Query) else None, functions)
