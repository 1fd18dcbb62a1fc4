"""A plan: named nodes with their components, and the queries that they make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from penstock.core.errors import OptionError, PenstockError
from penstock.core.location import Location
from penstock.sdk import Capability, Component, Relation, Sink, Source, Transform
from penstock.spec.models import OnError, PipelineSpec, SinkSpec, SourceSpec, TransformSpec
from penstock.spec.validate import Pipeline

OutputMode = Literal["append", "update"]


@dataclass(frozen=True)
class Node:
    """A source, transform or sink with everything resolved but its schema."""

    name: str
    kind: Literal["source", "transform", "sink"]
    component: Component[Any]
    spec: SourceSpec | TransformSpec | SinkSpec
    inputs: tuple[str, ...]
    where: Location | None
    stateful: bool = False

    @property
    def type(self) -> str:
        return self.spec.type

    @property
    def on_error(self) -> OnError:
        return self.spec.on_error

    @property
    def label(self) -> str:
        """How messages name it: `sink "table" (type: postgres)`."""
        return f'{self.kind} "{self.name}" (type: {self.type})'

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
        """Whether it is a table that is read once, not a stream."""
        return isinstance(self.spec, SourceSpec) and self.spec.static

    @property
    def batch_function(self) -> Transform[Any] | None:
        """The transform, if it is a function over batches."""
        return self.component if isinstance(self.component, Transform) else None

    @property
    def relation(self) -> Relation[Any] | None:
        """The transform, if it is a relation over DataFrames."""
        return self.component if isinstance(self.component, Relation) else None

    @property
    def deterministic(self) -> bool:
        """Whether the same input always gives the same output."""
        if isinstance(self.component, Transform):
            return bool(self.component.deterministic)
        return self.component.deterministic() if isinstance(self.component, Relation) else True

    def can(self, capability: Capability) -> bool:
        """Whether its component declares the capability."""
        return capability in self.component.capabilities


@dataclass(frozen=True)
class Query:
    """One Spark query: what is computed as a stream, and the sinks that hang below it.

    `trunk` is the node whose rows each batch holds; `within` are the nodes computed as a stream,
    `below` those computed on each batch, both in order. `reports` are the nodes whose bad records
    this query tells of: a node that several queries compute is told of by the first.
    """

    name: str
    trunk: str
    within: tuple[str, ...]
    below: tuple[str, ...]
    sinks: tuple[str, ...]
    output_mode: OutputMode = "append"
    reports: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Plan:
    """`nodes` are in an order in which each comes after its inputs."""

    pipeline: Pipeline
    nodes: Mapping[str, Node]
    queries: tuple[Query, ...]
    state: Path
    dead_letter: Node | None = None
    warnings: tuple[PenstockError, ...] = field(default=())

    @property
    def name(self) -> str:
        return self.pipeline.name

    @property
    def spec(self) -> PipelineSpec:
        return self.pipeline.spec

    def inside(self, path: tuple[str | int, ...], line: int, column: int) -> Location:
        """The place in the user's file of a line and column of the text at `path`."""
        return self.pipeline.document.inside(path, line, column)

    def place_of(self, error: PenstockError, node: Node) -> Location | None:
        """The place in the user's file of an error that a node's component raised."""
        if isinstance(error, OptionError):
            return self.pipeline.document.place_of(error, (f"{node.kind}s", node.name))
        return error.where or node.where

    def of(self, kind: str) -> Iterator[Node]:
        """The nodes of a kind."""
        return (node for node in self.nodes.values() if node.kind == kind)

    @property
    def streams(self) -> frozenset[str]:
        """The names of the nodes that are streams, not static tables."""
        found: set[str] = set()
        for node in self.nodes.values():
            is_stream = node.kind == "source" and not node.static
            if is_stream or any(name in found for name in node.inputs):
                found.add(node.name)
        return frozenset(found)

    def trigger(self, query: Query) -> float:
        """The least seconds from the begin of one batch of a query to that of the next."""
        trigger = self.spec.runtime.trigger
        specs = (self.nodes[name].spec for name in query.sinks)
        times = [spec.batch.time or 0.0 for spec in specs if isinstance(spec, SinkSpec)]
        return max([0.0 if trigger == "asap" else trigger, *times])

    @property
    def with_windows(self) -> tuple[Query, ...]:
        """The queries that keep rows until a watermark says that no more come."""
        return tuple(query for query in self.queries if self._has_windows(query))

    def _has_windows(self, query: Query) -> bool:
        nodes = [self.nodes[name] for name in query.within]
        remembers = any(node.stateful for node in nodes)
        return remembers and any(getattr(node.spec, "watermark", None) for node in nodes)

    @property
    def bounded(self) -> bool:
        """Whether the input of every stream ends."""
        return all(node.source.bounded() for node in self.of("source") if not node.static)
