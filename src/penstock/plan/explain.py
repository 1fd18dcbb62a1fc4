"""A plan in plain data: nodes, columns, queries, state, and what each sink can promise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.core.units import duration_text
from penstock.plan.guarantee import Guarantee, guarantee
from penstock.plan.hint import EVERYTHING, Hint
from penstock.plan.model import Node, Plan, Query
from penstock.sdk import registry
from penstock.sdk.kit.columns import sql_name
from penstock.sdk.kit.conjuncts import shown
from penstock.spec.models import SourceSpec


@dataclass(frozen=True)
class Column:
    """A column and its type as it is written in a `schema:`."""

    name: str
    type: str

    def __str__(self) -> str:
        return f"{self.name} {self.type}"


@dataclass(frozen=True)
class NodeFacts:
    """A node. `columns` are those of its output, or of a sink's input; None if not known yet."""

    name: str
    kind: str
    type: str
    inputs: tuple[str, ...]
    columns: tuple[Column, ...] | None
    format: str | None
    static: bool
    bounded: bool | None
    watermark: str | None
    remembers: str | None
    on_error: str
    guarantee: Guarantee | None


@dataclass(frozen=True)
class Needs:
    """What a query needs of a source: `columns` (None: all) of the rows that meet `where`."""

    source: str
    columns: tuple[str, ...] | None
    where: tuple[str, ...]


@dataclass(frozen=True)
class QueryFacts:
    """A query: `within` is computed as a stream, `below` on each batch of its last node.

    `needs` has the sources of which it does not need everything, as far as that is known.
    """

    name: str
    trunk: str
    within: tuple[str, ...]
    below: tuple[str, ...]
    sinks: tuple[str, ...]
    output_mode: str
    stateful: tuple[str, ...]
    checkpoint: str
    because: tuple[str, ...]
    needs: tuple[Needs, ...]


@dataclass(frozen=True)
class Explanation:
    """All that can be told of a plan before it runs. `state` and the like are paths."""

    pipeline: str
    bounded: bool
    nodes: tuple[NodeFacts, ...]
    queries: tuple[QueryFacts, ...]
    state: str
    state_store: str
    dead_letters: str


def explain(
    plan: Plan,
    columns: Mapping[str, pa.Schema] | None = None,
    hints: Mapping[str, Mapping[str, Hint]] | None = None,
) -> Explanation:
    """Explains a plan; `columns` are those of its sources and transforms, as Spark tells them.

    Without them only what is declared is known. `hints` are what each query needs of its sources.
    """
    store = plan.spec.runtime.state_store
    letters = plan.dead_letter
    return Explanation(
        pipeline=plan.name,
        bounded=plan.bounded,
        nodes=tuple(_node(plan, node, columns or {}) for node in plan.nodes.values()),
        queries=tuple(
            _query(plan, query, (hints or {}).get(query.name, {})) for query in plan.queries
        ),
        state=str(plan.state),
        state_store="rocksdb" if store == "rocksdb" else "memory",
        dead_letters=letters.label if letters else str(plan.state / "dead_letters"),
    )


def columns_of(schema: pa.Schema) -> tuple[Column, ...]:
    """The columns of an Arrow schema, in the words of a `schema:`."""
    return tuple(Column(field.name, sql_name(field.type)) for field in schema)


def _node(plan: Plan, node: Node, known: Mapping[str, pa.Schema]) -> NodeFacts:
    source = node.source if node.kind == "source" else None
    watermark = node.spec.watermark if isinstance(node.spec, SourceSpec) else None
    delay = f", up to {duration_text(watermark.delay)} late" if watermark else ""
    return NodeFacts(
        name=node.name,
        kind=node.kind,
        type=node.type,
        inputs=node.inputs,
        columns=_columns(plan, node, known),
        format=_format(node),
        static=node.static,
        bounded=source.bounded() if source else None,
        watermark=f"{watermark.column}{delay}" if watermark else None,
        remembers=_remembers(plan, node),
        on_error=node.on_error,
        guarantee=guarantee(plan, node) if node.kind == "sink" else None,
    )


def _columns(plan: Plan, node: Node, known: Mapping[str, pa.Schema]) -> tuple[Column, ...] | None:
    if node.kind == "sink":
        return _columns(plan, plan.nodes[node.inputs[0]], known)
    if node.name in known:
        return columns_of(known[node.name])
    declared = node.source.columns if node.kind == "source" else None
    return columns_of(declared) if declared is not None else None


def _format(node: Node) -> str | None:
    if node.kind == "transform":
        return None
    format_ = node.source.format if node.kind == "source" else node.sink.format
    known = (t for t in registry.types("format") if format_ is not None)
    return next((t for t in known if type(format_) is registry.find("format", t)), None)


def _remembers(plan: Plan, node: Node) -> str | None:
    """What a node keeps from one batch to the next."""
    if not node.stateful:
        return None
    facts = getattr(node.component, "facts", None)
    told = facts.remembers(frozenset(node.inputs) & plan.streams) if facts else ()
    return ", ".join(told) or "rows that it has seen"


def _query(plan: Plan, query: Query, hints: Mapping[str, Hint]) -> QueryFacts:
    return QueryFacts(
        name=query.name,
        trunk=query.trunk,
        within=query.within,
        below=query.below,
        sinks=query.sinks,
        output_mode=query.output_mode,
        stateful=tuple(name for name in query.within if plan.nodes[name].stateful),
        checkpoint=str(plan.state / "checkpoints" / query.name),
        because=tuple(_because(plan, query)),
        needs=tuple(
            _needs(plan, name, hints[name])
            for name in query.within
            if hints.get(name, EVERYTHING) != EVERYTHING
        ),
    )


def _needs(plan: Plan, source: str, hint: Hint) -> Needs:
    columns = None
    if hint.columns is not None:
        component = plan.nodes[source].source
        known = [*(component.columns or pa.schema([])).names, *component.metadata_columns]
        columns = tuple(name for name in known if name in hint.columns)
    return Needs(source, columns, tuple(shown(conjunct) for conjunct in hint.conjuncts))


def _because(plan: Plan, query: Query) -> Sequence[str]:
    trunk = plan.nodes[query.trunk]
    if trunk.stateful:
        first = f"{trunk.name} remembers {_remembers(plan, trunk)}, so it is computed as a stream"
    elif trunk.kind == "source":
        first = "nothing above its sinks remembers rows, so each batch stands for itself"
    else:
        first = f"{trunk.name} brings several streams together"
    if query.output_mode == "update":
        second = "rows that have changed are written again, and replace those with the same key"
    elif trunk.stateful:
        second = "rows are written once, when they are final"
    else:
        second = "rows are written as they come"
    return first, second
