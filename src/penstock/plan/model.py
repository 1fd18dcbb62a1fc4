"""The plan: nodes, and the queries that compute them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from penstock.core.errors import OptionError, PenstockError
from penstock.core.location import Location
from penstock.plan.functions.model import Function
from penstock.plan.node import Node
from penstock.plan.state_location import StateLocation
from penstock.sdk import Capability, ReplayableSource, SideOutput
from penstock.spec.models import PipelineSpec
from penstock.spec.node_models import BatchOptions, SinkSpec
from penstock.spec.source_map import locate_error
from penstock.spec.validate import Pipeline

OutputMode = Literal["append", "update"]


@dataclass(frozen=True)
class Query:
    """One Spark query: a stream, and the sinks of its batches.

    Each batch holds the rows of `root`. `stream_nodes` are computed as a stream, `batch_nodes` on
    each batch; both are in topological order. `dead_letter_nodes` are the nodes whose bad records
    this query reports: a node of several queries is reported by the first one. With `whole_input`
    the query has a single batch, of all rows of sources whose input ends. Several such sources are
    `merged` in one stream; `root` is then the list of their names. With `past_watermarks` the query
    repeats batches of another one, including those without rows. The sources determine the batches,
    and these are their watermarks, in milliseconds since 1970. An `updating` query keeps the
    state of its updating transforms itself; its roots may be sources and stateful transforms.
    """

    name: str
    root: str
    stream_nodes: tuple[str, ...]
    batch_nodes: tuple[str, ...]
    sinks: tuple[str, ...]
    output_mode: OutputMode = "append"
    dead_letter_nodes: frozenset[str] = frozenset()
    whole_input: bool = False
    merged: tuple[str, ...] = ()
    past_watermarks: tuple[int, ...] | None = None
    updating: bool = False
    observed: Mapping[str, int] = field(default_factory=dict)
    """The nodes of the batches that side outputs observe, with the number of rows to copy."""


@dataclass(frozen=True)
class Observer:
    """A side output of a plan. It receives at most `max_rows` rows of each batch of its inputs."""

    name: str
    component: SideOutput[Any]
    inputs: tuple[str, ...]
    max_rows: int


@dataclass(frozen=True)
class Plan:
    """A pipeline as nodes and queries. `nodes` are in topological order.

    `state` is the local directory of the state at `location`, or that of a trial of the plan. All
    runs of the plan share the components, and no run changes a component.
    """

    pipeline: Pipeline
    nodes: Mapping[str, Node]
    queries: tuple[Query, ...]
    state: Path
    location: StateLocation
    dead_letter: Node | None = None
    warnings: tuple[PenstockError, ...] = field(default=())
    functions: tuple[Function, ...] = ()
    """The functions that SQL can call."""
    observers: tuple[Observer, ...] = ()

    @property
    def name(self) -> str:
        return self.pipeline.name

    @property
    def spec(self) -> PipelineSpec:
        return self.pipeline.spec

    @property
    def keyed_lookups(self) -> bool:
        """Whether rows of a lookup table are looked up by key."""
        return any(node.can(Capability.LOOKUP_BY_KEY) for node in self.of("source"))

    def inside(self, path: tuple[str | int, ...], line: int, column: int) -> Location:
        """Returns the location in the user's file of a line and column of the text at `path`."""
        return self.pipeline.source_map.inside(path, line, column)

    def locate(self, error: PenstockError, node: Node) -> Location | None:
        """Returns the location in the user's file of an error of a node's component."""
        if isinstance(error, OptionError):
            return locate_error(self.pipeline.source_map, error, node.route)
        return error.where or node.where

    def of(self, kind: str) -> Iterator[Node]:
        """Yields the nodes of a kind."""
        return (node for node in self.nodes.values() if node.kind == kind)

    def fill_of(self, table: str) -> Node | None:
        """Returns the sink that adds values to a dynamic table; None without a query."""
        fills = (node for node in self.of("sink") if node.dynamic_table == table)
        return next(fills, None)

    def queries_of(self, node: Node) -> list[Query]:
        """Returns the queries that compute a node."""
        return [
            query
            for query in self.queries
            if node.name in (*query.stream_nodes, *query.batch_nodes)
        ]

    @property
    def streams(self) -> frozenset[str]:
        """The names of the nodes that are streams, not static tables."""
        names: set[str] = set()
        for node in self.nodes.values():
            is_stream = node.kind == "source" and not node.static
            if is_stream or any(name in names for name in node.inputs):
                names.add(node.name)
        return frozenset(names)

    def trigger(self, query: Query) -> float:
        """Returns the minimum seconds between the starts of two batches of a query."""
        trigger = self.spec.runtime.trigger
        times = [each.interval or 0.0 for each in self._batches(query) if not each.min_records]
        return max([0.0 if trigger == "asap" else trigger, *times])

    def wait(self, query: Query) -> tuple[float | None, int | None]:
        """Returns the wait for each batch of a query: seconds, and a number of records.

        Without a number the seconds are those without new records, and None for no wait. With a
        number they are the longest time that a record waits for others.
        """
        batches = self._batches(query)
        gap = max((each.gap or 0.0 for each in batches), default=0.0)
        filled = [each for each in batches if each.min_records and each.interval]
        if gap or not filled:
            return gap or None, None
        times = [each.interval for each in filled if each.interval]
        return max(times), min(each.min_records for each in filled if each.min_records)

    def _batches(self, query: Query) -> list[BatchOptions]:
        """Returns the options of the batches of the sinks of a query."""
        specs = (self.nodes[name].spec for name in query.sinks)
        return [spec.batch for spec in specs if isinstance(spec, SinkSpec)]

    def keeps_state(self, query: Query) -> bool:
        """Returns whether the root of a query keeps state between batches."""
        return query.root in self.nodes and self.nodes[query.root].stateful

    def reads_sources_only(self, query: Query) -> bool:
        """Returns whether the root of a query is a source, or several."""
        roots = query.merged or (query.root,)
        return all(self.nodes[name].kind == "source" for name in roots)

    @property
    def final_queries(self) -> tuple[Query, ...]:
        """The queries that are computed once, at the end of the input."""
        return tuple(query for query in self.queries if query.whole_input)

    @property
    def with_windows(self) -> tuple[Query, ...]:
        """The queries with state that a watermark closes."""
        return tuple(query for query in self.queries if self._has_windows(query))

    @property
    def closes_windows_at_once(self) -> bool:
        """Whether the batch of the last rows can close all windows.

        Another query of streams could fail after it, and another source could have rows left. A
        transform that computes the event time does not pass the sentinel row on, and the watermarks
        of partitions do not include it.
        """
        streams = [query for query in self.queries if not query.whole_input]
        if len(streams) != 1 or streams[0].past_watermarks is not None or not self.bounded:
            return False
        nodes = [self.nodes[name] for name in streams[0].stream_nodes]
        sources = [node for node in nodes if node.kind == "source"]
        marked = [node for node in nodes if node.watermark is not None]
        if len(sources) != 1 or marked != sources or marked[0].computes_event_time:
            return False
        source = marked[0].source
        has_partitions = isinstance(source, ReplayableSource) and source.partitioned
        return self._has_windows(streams[0]) and not has_partitions

    def _has_windows(self, query: Query) -> bool:
        nodes = [self.nodes[name] for name in query.stream_nodes]
        stateful = any(node.stateful for node in nodes)
        return stateful and any(node.watermark for node in nodes)

    @property
    def bounded(self) -> bool:
        """Whether the input of every stream ends."""
        return all(node.source.is_bounded() for node in self.of("source") if not node.static)
