"""A node of a plan: a source, transform or sink."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from penstock.core.location import Location
from penstock.core.names import written_name
from penstock.sdk import (
    Capability,
    Component,
    DataFrameTransform,
    Relation,
    Sink,
    Source,
    State,
    Transform,
)
from penstock.sdk.sql_text import SqlText
from penstock.sdk.transform import QueryTransform
from penstock.spec.model_types import OnError
from penstock.spec.node_models import Late, Lookup, SinkSpec, SourceSpec, TransformSpec, Watermark
from penstock.sql.dialect.relation import InputRelation


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
    feeds_conditions: bool = False
    """Whether a sink downstream compares rows with those of its table, where a row before an update
    and one after another update must not become adjacent."""
    dynamic_table: str | None = None
    """The dynamic table to which the node belongs (see `plan.dynamic_tables`)."""
    checked_tables: tuple[str, ...] = ()
    """The dynamic tables that the SQL of a transform checks or joins."""

    @property
    def drops_changes(self) -> bool:
        """Whether a condition may drop the rows of changes, in place of deletes."""
        return self.complete_changes and not self.feeds_conditions

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
