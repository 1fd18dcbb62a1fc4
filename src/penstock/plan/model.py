"""The plan: named nodes with their components, and queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from penstock.core.errors import OptionError, PenstockError
from penstock.core.location import Location
from penstock.core.names import written_name
from penstock.plan.functions.model import Function
from penstock.sdk import (
    Capability,
    Component,
    DataFrameTransform,
    Relation,
    SideOutput,
    Sink,
    Source,
    State,
    Transform,
)
from penstock.sdk.sql_text import SqlText
from penstock.sdk.transform import QueryTransform
from penstock.spec.model_types import OnError
from penstock.spec.models import PipelineSpec
from penstock.spec.node_models import (
    BatchOptions,
    Late,
    Lookup,
    SinkSpec,
    SourceSpec,
    TransformSpec,
    Watermark,
)
from penstock.spec.source_map import locate_error
from penstock.spec.validate import Pipeline
from penstock.sql.dialect.relation import InputRelation

OutputMode = Literal["append", "update"]


@dataclass(frozen=True)
class Node:
    """A source, transform or sink, resolved except for its schema.

    `name` is unique. A sink with the name of a source or a transform has the name `sinks.NAME`.
    """

    name: str
    kind: Literal["source", "transform", "sink"]
    component: Component[Any]
    spec: SourceSpec | TransformSpec | SinkSpec
    inputs: tuple[str, ...]
    where: Location | None
    relation: Relation | None = None
    """The facts of a transform of DataFrames (see `plan.dialect`)."""
    read: Mapping[str, InputRelation] = field(default_factory=dict)
    """The inputs of a transform of DataFrames as it reads them, by name in lower case."""
    stateful: bool = False
    updating: bool = False
    """Whether the output is the changes of a result (see `plan.updating`)."""
    primary_key: tuple[str, ...] = ()
    """The columns that identify a row of the output (of a sink: of the input), or none."""
    unknown_key: bool = False
    """Whether the primary key depends on a key that a system declares and that is not read yet."""
    origin_key: tuple[str, ...] | None = None
    """The columns that hold the primary key of the changes upstream, which several rows may have:
    none if it is lost, None if no key is known."""
    keeps_changes: bool = True
    """Whether each change of the input has a row in the output, but for conditions of WHERE."""
    operation: str | None = None
    """The column of the output (of a sink: of the input) that holds the operation of each row."""

    computes_operations: bool = False
    """Whether the output of a transform may have operations that its input has not."""
    complete_changes: bool = False
    """Whether each update and delete of the input has the whole row before."""
    dynamic_table: str | None = None
    """The dynamic table to which the node belongs (see `plan.dynamic_tables`)."""
    checked_tables: tuple[str, ...] = ()
    """The dynamic tables that the SQL of a transform checks or joins."""

    @property
    def type(self) -> str:
        return self.spec.type

    @property
    def written_name(self) -> str:
        """The name in the file."""
        return written_name(self.name)

    @property
    def route(self) -> tuple[str, str]:
        """The route of the node in its file. An output of a transform has that of the transform."""
        if self.dynamic_table is not None:
            return "transforms", self.dynamic_table
        name = self.written_name
        return f"{self.kind}s", name.partition(".")[0] if self.kind == "transform" else name

    @property
    def is_named(self) -> bool:
        """Whether the user's file names the node. Nodes that a script needs have other names."""
        return self.where is None or self.route[1].lower() in self.where.text.lower()

    @property
    def removed_operation(self) -> str | None:
        """The operation column that is removed from the rows before a sink writes them."""
        return None if self.sink.keeps_operations else self.operation

    @property
    def on_error(self) -> OnError:
        return self.spec.on_error

    @property
    def label(self) -> str:
        """The name in messages: `sink "table" (type: postgres)`."""
        if self.dynamic_table is not None:
            return f'dynamic table "{self.dynamic_table}"'
        return f'{self.kind} "{self.written_name}" (type: {self.type})'

    @property
    def source(self) -> Source[Any]:
        assert isinstance(self.component, Source)
        return self.component

    @property
    def sink(self) -> Sink[Any]:
        assert isinstance(self.component, Sink)
        return self.component

    @property
    def static(self) -> bool:
        """Whether the source is a table instead of a stream: read once, or a lookup table."""
        return isinstance(self.spec, SourceSpec) and (self.spec.static or self.lookup is not None)

    @property
    def lookup(self) -> Lookup | None:
        """The options of a lookup table, which is read again when it changes; None for others."""
        return self.spec.lookup_table if isinstance(self.spec, SourceSpec) else None

    @property
    def in_state(self) -> bool:
        """Whether the rows of a dynamic table are in the state directory."""
        return self.dynamic_table is not None and self.type == "dynamic_table"

    @property
    def batch_function(self) -> Transform[Any] | None:
        """The transform, if it is a function over batches."""
        return self.component if isinstance(self.component, Transform) else None

    @property
    def frame_transform(self) -> DataFrameTransform[Any] | None:
        """The transform, if it is a relation over DataFrames."""
        return self.component if isinstance(self.component, DataFrameTransform) else None

    @property
    def query_transform(self) -> QueryTransform[Any] | None:
        """The transform, if its text names its inputs."""
        return self.component if isinstance(self.component, QueryTransform) else None

    @property
    def sql_texts(self) -> Sequence[SqlText]:
        """The SQL texts among the options of a transform of DataFrames."""
        return () if self.frame_transform is None else self.frame_transform.sql_texts()

    @property
    def state(self) -> State | None:
        """The state that a transform of DataFrames keeps between batches."""
        return self.relation.state if self.relation is not None and self.stateful else None

    @property
    def batch_scoped(self) -> bool:
        """Whether a transform must be computed on each batch, not on the stream."""
        return self.relation is not None and self.relation.batch_scoped

    @property
    def deterministic(self) -> bool:
        """Whether the same input always gives the same output."""
        if isinstance(self.component, Transform):
            return bool(self.component.deterministic)
        return self.relation is None or self.relation.deterministic

    @property
    def watermark(self) -> Watermark | None:
        """The watermark that the node defines."""
        return getattr(self.spec, "watermark", None)

    @property
    def late(self) -> Late:
        """The action for late rows of the watermark that the node defines."""
        return getattr(self.spec, "late", "drop")

    @property
    def computes_event_time(self) -> bool:
        """Whether the watermark is on a column that SQL or a function computes."""
        watermark = self.watermark
        return watermark is not None and (
            self.kind == "transform" or watermark.expression is not None
        )

    def can(self, capability: Capability) -> bool:
        """Returns whether the component declares a capability."""
        return capability in self.component.capabilities


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
    """A side output of a plan. It gets at most `max_rows` rows of each batch of its inputs."""

    name: str
    component: SideOutput[Any]
    inputs: tuple[str, ...]
    max_rows: int


@dataclass(frozen=True)
class Plan:
    """A pipeline as nodes and queries. `nodes` are in topological order.

    All runs of the plan share the components, and no run changes a component.
    """

    pipeline: Pipeline
    nodes: Mapping[str, Node]
    queries: tuple[Query, ...]
    state: Path
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

    def _has_windows(self, query: Query) -> bool:
        nodes = [self.nodes[name] for name in query.stream_nodes]
        stateful = any(node.stateful for node in nodes)
        return stateful and any(node.watermark for node in nodes)

    @property
    def bounded(self) -> bool:
        """Whether the input of every stream ends."""
        return all(node.source.is_bounded() for node in self.of("source") if not node.static)
