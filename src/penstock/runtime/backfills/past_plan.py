"""The plan of a backfill: a sink alone, and sources that end."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.engine.checkpoints.start_offsets import StartOffsets
from penstock.plan.graph import upstream
from penstock.plan.model import Plan, Query
from penstock.plan.node import Node
from penstock.plan.rewrite import replace_sources
from penstock.runtime.backfills.past_batches import PastBatches
from penstock.runtime.backfills.past_source import PastBatchesSource, PastSource
from penstock.runtime.backfills.sink_starts import depends_on_batches
from penstock.runtime.state.directory import StateDirectory
from penstock.sdk import Offset, ReplayableSource, Source


def backfill_query(sink: str) -> str:
    """Returns the name of the query of a backfill."""
    return f"backfill-{sink}"


def stream_sources(plan: Plan, query: Query) -> list[Node]:
    """Returns the streams that a query reads."""
    nodes = (plan.nodes[name] for name in query.stream_nodes)
    return [node for node in nodes if node.kind == "source" and not node.static]


def initial_offsets(
    plan: Plan, state: StateDirectory, query: Query, ends: Mapping[str, Offset]
) -> dict[str, Offset]:
    """Returns the first offset of each source, at most its end. Works on copies of the sources.

    Where rows depend on earlier rows, this is the offset at which the query has started.
    """
    begins: dict[str, Offset] = {}
    if depends_on_batches(plan, query):
        begins |= StartOffsets(state.checkpoint(query.name)).read()
    for node in stream_sources(plan, query):
        if node.name in begins:
            continue
        source = pickle.loads(pickle.dumps(node.source))
        assert isinstance(source, ReplayableSource)
        try:
            initial = source.initial_offset()
            begins[node.name] = dict(source.min_offset(initial, ends.get(node.name, initial)))
        finally:
            source.close()
    return begins


def past_sources(
    plan: Plan,
    query: Query,
    begins: Mapping[str, Offset],
    ends: Mapping[str, Offset],
    past: PastBatches | None,
) -> dict[str, Source[Any]]:
    """Returns the sources of a backfill: those of its query up to the offsets `ends`."""
    sources: dict[str, Source[Any]] = {}
    for node in stream_sources(plan, query):
        assert isinstance(node.source, ReplayableSource)
        begin = begins[node.name]
        if past is None:
            sources[node.name] = PastSource(node.source, begin, ends.get(node.name, begin))
        else:
            sources[node.name] = PastBatchesSource(node.source, past.bounds(node.name, begin))
    return sources


def past_plan(
    plan: Plan,
    query: Query,
    sink: str,
    sources: Mapping[str, Source[Any]],
    past: PastBatches | None,
) -> Plan:
    """Returns the plan of a sink alone, with other sources.

    Bad records of nodes that other sinks read are dead letters of the pipeline already.
    """
    above = upstream([sink], plan.nodes)
    others = [node.name for node in plan.of("sink") if node.name != sink]
    own = above - upstream(others, plan.nodes)
    alone = replace(
        query,
        name=backfill_query(sink),
        batch_nodes=tuple(name for name in query.batch_nodes if name in above),
        sinks=(sink,),
        dead_letter_nodes=frozenset({sink, *own}),
        past_watermarks=None if past is None else past.watermarks,
    )
    nodes = {name: node for name, node in plan.nodes.items() if name in above or name == sink}
    return replace_sources(replace(plan, nodes=nodes, queries=(alone,)), sources)
