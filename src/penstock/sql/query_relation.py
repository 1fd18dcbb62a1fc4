"""Facts of a query as a relation over its inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from penstock.sql.change_rewrite import filters_by_chance
from penstock.sql.column_lineage import ColumnLineage
from penstock.sql.completeness import needs_whole_input, time_columns
from penstock.sql.dialect.bind import Bound
from penstock.sql.dialect.relation import InputRelation
from penstock.sql.equalities import joins_without_equality
from penstock.sql.facts import Facts
from penstock.sql.keyed_rows import KeyedRows
from penstock.sql.primary_keys import keyed_rows
from penstock.sql.relation import Relation, State
from penstock.sql.table_joins import keeps_constant_rows, keeps_table_rows, merges_table_rows


def query_relation(
    written: Facts, read: Facts, bound: Bound, inputs: Iterable[InputRelation], *, by_batch: bool
) -> Relation:
    """Returns the facts of a query.

    `written` are the facts of the text that `bound` comes from, and `read` those of its own text.
    With `by_batch` the query is computed on each batch.
    """
    inputs = list(inputs)
    batch_scoped = by_batch or bound.by_window
    streaming = frozenset(each.name for each in inputs if each.is_stream)
    keeps_state = written.stateful(streaming) or keeps_constant_rows(written, streaming)
    streams = _streams_read(streaming, bound)
    return Relation(
        deterministic=written.deterministic,
        filters_by_chance=filters_by_chance(read),
        batch_scoped=batch_scoped,
        incremental=True,
        state=_state(written, read, bound, streaming) if keeps_state and not batch_scoped else None,
        lineage=QueryColumns(read, bound),
        output=bound.output,
        text=written.text,
        reads={each.name: max(read.count_reads(each.name), 1) for each in inputs},
        calls_windows=read.calls_windows,
        has_subqueries=read.has_subqueries(streams),
        keeps_table_rows=keeps_table_rows(read, streams),
        merges_table_rows=merges_table_rows(read, streams),
        replaces_views=bool(bound.in_place),
        hidden_windows=tuple(sorted(bound.hidden)),
    )


def _state(written: Facts, read: Facts, bound: Bound, streaming: frozenset[str]) -> State:
    """Returns the state of a query. `streaming` are the inputs that are streams."""
    streams = _streams_read(streaming, bound)
    only_joins = read.only_joins(streams) and not (
        joins_without_equality(read, streams) or keeps_constant_rows(read, streams)
    )
    return QueryState(
        contents=written.describe_state(streaming) or State().contents,
        only_joins=only_joins,
        simply_aggregates=read.simply_aggregates,
        sorts_without_limit=read.sorts_without_limit,
        facts=read,
        bound=bound,
        streams=streams,
    )


@dataclass(frozen=True, kw_only=True)
class QueryState(State):
    """The state of a query of `streams`."""

    facts: Facts
    bound: Bound
    streams: frozenset[str]

    def needs_whole_input(self, times: Set[str] | None, grouped: Set[str]) -> bool:
        known = None if times is None else _with_times_of_views(times, self.bound)
        return needs_whole_input(self.facts, self.streams, known, self.bound.columns, grouped)


@dataclass(frozen=True)
class QueryColumns(ColumnLineage):
    """The columns of a query."""

    facts: Facts
    bound: Bound

    def keyed_rows(self, inputs: Mapping[str, KeyedRows]) -> KeyedRows:
        return keyed_rows(self.facts, inputs)

    def time_columns(self, times: Set[str]) -> Set[str] | None:
        return time_columns(self.facts, _with_times_of_views(times, self.bound), self.bound.columns)


def _streams_read(streaming: frozenset[str], bound: Bound) -> frozenset[str]:
    """Returns the streams that the text reads, also in queries in place of views."""
    names = {name.lower() for name in streaming}
    views = [view for name, view in bound.in_place.items() if name in names]
    return streaming.union(each.name for view in views for each in view.streams())


def _with_times_of_views(times: Set[str], bound: Bound) -> Set[str]:
    """Returns the columns with event times, also of streams that views read."""
    read = [each.output for view in bound.in_place.values() for each in view.streams()]
    found = {name for output in read for name in (output.time, *output.windows) if name}
    return {*times, *found}
