"""Explanations of plans as plain data: nodes, columns, queries, state and guarantees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.core.units import duration_text
from penstock.plan.guarantee import Guarantee, guarantee
from penstock.plan.lookups import table_columns
from penstock.plan.model import Plan, Query
from penstock.plan.node import Node
from penstock.plan.node_changes import Change
from penstock.plan.pushdown import EVERYTHING, Pushdown
from penstock.sdk import registry
from penstock.sdk.columns.json_mark import column_type
from penstock.sdk.columns.predicates import conjunct_sql


@dataclass(frozen=True)
class Column:
    """A column and its type as written in a `schema:`."""

    name: str
    type: str

    def __str__(self) -> str:
        return f"{self.name} {self.type}"


@dataclass(frozen=True)
class NodeFacts:
    """A node. `columns` are the columns of its output, or of a sink's input; None if unknown.

    `state` is a description of its state in a query; None without state. `dynamic_table` is the
    dynamic table that the node belongs to, and `checks` are those that its SQL checks.
    """

    name: str
    kind: str
    type: str
    inputs: tuple[str, ...]
    columns: tuple[Column, ...] | None
    format: str | None
    static: bool
    lookup: bool
    bounded: bool | None
    watermark: str | None
    state: str | None
    on_error: str
    guarantee: Guarantee | None
    dynamic_table: str | None = None
    checks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Needs:
    """The pushdown of a source: `columns` (None: all) and conditions of the rows."""

    source: str
    columns: tuple[str, ...] | None
    where: tuple[str, ...]


@dataclass(frozen=True)
class QueryFacts:
    """A query: `stream_nodes` run as a stream up to `root`, `batch_nodes` run on each batch of it.

    `reasons` explain the root and the output mode. `needs` are the known pushdowns.
    """

    name: str
    root: str
    stream_nodes: tuple[str, ...]
    batch_nodes: tuple[str, ...]
    sinks: tuple[str, ...]
    output_mode: str
    stateful: tuple[str, ...]
    checkpoint: str
    reasons: tuple[str, ...]
    needs: tuple[Needs, ...]


@dataclass(frozen=True)
class ReplacedOption:
    """An option that a file replaces in an earlier file, as `sinks.out.path`, with both lines."""

    option: str
    where: str
    replaced: str


@dataclass(frozen=True)
class Explanation:
    """The facts of a plan before a run.

    `state` and `dead_letters` are paths. `memory` is the heap. `changes` are those since the last
    run, with their effects on the state.
    """

    pipeline: str
    bounded: bool
    nodes: tuple[NodeFacts, ...]
    queries: tuple[QueryFacts, ...]
    state: str
    state_store: str
    memory: str
    dead_letters: str
    replaced: tuple[ReplacedOption, ...] = ()
    changes: tuple[Change, ...] = ()


def explain(
    plan: Plan,
    columns: Mapping[str, pa.Schema] | None = None,
    pushdowns: Mapping[str, Mapping[str, Pushdown]] | None = None,
    *,
    state_store: str | None = None,
    memory: str | None = None,
    changes: Sequence[Change] = (),
) -> Explanation:
    """Explains a plan. `columns` are the columns of its sources and transforms from Spark.

    Without `columns` only declared columns are known. `pushdowns` are by query and source.
    `state_store` and `memory` are those of this machine, and default to those of the pipeline file.
    """
    runtime = plan.spec.runtime
    dead_letters = plan.dead_letter
    return Explanation(
        pipeline=plan.name,
        bounded=plan.bounded,
        nodes=tuple(_node(plan, node, columns or {}) for node in plan.nodes.values()),
        queries=tuple(
            _query(plan, query, (pushdowns or {}).get(query.name, {})) for query in plan.queries
        ),
        state=str(plan.location),
        state_store=state_store or runtime.state_store,
        memory=memory or runtime.memory,
        dead_letters=dead_letters.label if dead_letters else str(plan.state / "dead_letters"),
        replaced=tuple(
            ReplacedOption(
                ".".join(map(str, each.route)),
                f"{each.where.file}:{each.where.line}",
                f"{each.replaced.file}:{each.replaced.line}",
            )
            for each in plan.pipeline.replacements
        ),
        changes=tuple(changes),
    )


def columns_of(schema: pa.Schema) -> tuple[Column, ...]:
    """Returns the columns of an Arrow schema as written in a `schema:`."""
    return tuple(Column(field.name, column_type(field)) for field in schema)


def _node(plan: Plan, node: Node, known: Mapping[str, pa.Schema]) -> NodeFacts:
    source = node.source if node.kind == "source" else None
    watermark = node.watermark
    delay = f", up to {duration_text(watermark.delay)} late" if watermark else ""
    if watermark and watermark.idle is not None:
        delay += f", idle after {duration_text(watermark.idle)}"
    return NodeFacts(
        name=node.name,
        kind=node.kind,
        type=node.type,
        inputs=node.inputs,
        columns=_columns(plan, node, known),
        format=_format(node),
        static=node.static,
        lookup=node.lookup is not None,
        bounded=source.is_bounded() if source else None,
        watermark=f"{watermark.column}{delay}" if watermark else None,
        state=_describe_state(node),
        on_error=node.on_error,
        guarantee=guarantee(plan, node) if node.kind == "sink" else None,
        dynamic_table=node.dynamic_table,
        checks=node.checked_tables,
    )


def _columns(plan: Plan, node: Node, known: Mapping[str, pa.Schema]) -> tuple[Column, ...] | None:
    if node.kind == "sink":
        return _columns(plan, plan.nodes[node.inputs[0]], known)
    if node.name in known:
        return columns_of(known[node.name])
    declared = node.source.columns if node.kind == "source" else None
    return columns_of(table_columns(node, declared)) if declared is not None else None


def _format(node: Node) -> str | None:
    if node.kind == "transform":
        return None
    format_ = node.source.format if node.kind == "source" else node.sink.format
    known = (t for t in registry.types("format") if format_ is not None)
    return next((t for t in known if type(format_) is registry.find("format", t)), None)


def _describe_state(node: Node) -> str | None:
    """Returns the contents of a node's state."""
    return None if node.state is None else ", ".join(node.state.contents)


def _query(plan: Plan, query: Query, pushdowns: Mapping[str, Pushdown]) -> QueryFacts:
    return QueryFacts(
        name=query.name,
        root=query.root,
        stream_nodes=query.stream_nodes,
        batch_nodes=query.batch_nodes,
        sinks=query.sinks,
        output_mode="changes" if query.updating else query.output_mode,
        stateful=tuple(name for name in _members(query) if plan.nodes[name].stateful),
        checkpoint=str(plan.state / "checkpoints" / query.name),
        reasons=tuple(_reasons(plan, query)),
        needs=tuple(
            _needs(plan, name, pushdowns[name])
            for name in query.stream_nodes
            if pushdowns.get(name, EVERYTHING) != EVERYTHING
        ),
    )


def _needs(plan: Plan, source: str, pushdown: Pushdown) -> Needs:
    columns = None
    if pushdown.columns is not None:
        component = plan.nodes[source].source
        known = [*(component.columns or pa.schema([])).names, *component.metadata_columns]
        columns = tuple(name for name in known if name in pushdown.columns)
    return Needs(source, columns, tuple(conjunct_sql(conjunct) for conjunct in pushdown.conjuncts))


def _reasons(plan: Plan, query: Query) -> Sequence[str]:
    if query.whole_input:
        return (
            f"rows of {query.name} are final when the input ends, so all input is one batch",
            "rows are written once, when final",
        )
    if query.updating:
        return _updating_reasons(plan, query)
    root = plan.nodes[query.root]
    if root.stateful:
        state = _describe_state(root)
        first = f"{root.name} keeps {state} as state, so it is computed as a stream"
    elif root.kind == "source":
        first = "no node upstream of its sinks keeps state, so batches are independent"
    else:
        first = f"{root.name} combines several streams"
    if query.output_mode == "update":
        second = "changed rows are written again and replace the rows with the same key"
    elif root.state is not None and root.state.emits_final_rows:
        second = "rows are written at once, duplicates are dropped"
    elif root.stateful:
        second = "rows are written once, when final"
    else:
        second = "rows are written as they arrive"
    return first, second


def _updating_reasons(plan: Plan, query: Query) -> Sequence[str]:
    nodes = [plan.nodes[name] for name in query.batch_nodes]
    states = [
        f"{node.name} keeps {_describe_state(node)} as state, updated with each batch"
        for node in nodes
        if node.updating and node.stateful
    ]
    return (*states, "results are never final: inserts, updates and deletes of rows are written")


def _members(query: Query) -> tuple[str, ...]:
    """Returns the nodes of a query whose state is in its checkpoint."""
    return (*query.stream_nodes, *(query.batch_nodes if query.updating else ()))
