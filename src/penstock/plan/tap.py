"""Plans made from a plan: with other sinks, to see what flows, or with other sources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.core.errors import PlanError
from penstock.core.text import did_you_mean
from penstock.plan.capture import Capture
from penstock.plan.model import Node, Plan
from penstock.plan.queries import make_queries, upstream
from penstock.sdk import Context, Source
from penstock.spec.models import SinkSpec


def tapped(
    plan: Plan, names: Iterable[str], *, most: int | None = None
) -> tuple[Plan, dict[str, Capture]]:
    """The plan with no sinks but captures at the named nodes, and only what leads to them.

    At a sink the capture takes its place: it gets what is written there, in the sink's mode. A
    node that is no stream gets no capture. Raises PlanError for an unknown name.
    """
    streams = plan.streams
    captures: dict[str, Capture] = {}
    sinks: dict[str, Node] = {}
    wanted = list(dict.fromkeys(names))
    for name in wanted:
        node = plan.nodes.get(name)
        if node is None:
            raise PlanError(
                f'there is no node "{name}"', code="unknown-node",
                hint=did_you_mean(name, plan.nodes),
            )  # fmt: skip
        if name in streams:
            at = name if node.kind == "sink" else f"@{name}"
            like = node.sink if node.kind == "sink" else None
            captures[name] = Capture(Context(plan.name, at, None), like, most)
            sinks[at] = _tap(node, at, captures[name])
    needed = upstream(sinks, {**plan.nodes, **sinks}) | set(upstream(wanted, plan.nodes))
    needed |= {name for name in wanted if plan.nodes[name].kind != "sink"}
    nodes = {name: node for name, node in plan.nodes.items() if name in needed} | sinks
    queries = make_queries(nodes, streams | sinks.keys())
    return replace(plan, nodes=nodes, queries=queries, dead_letter=None), captures


def fed(plan: Plan, sources: Mapping[str, Source[Any]]) -> Plan:
    """The plan with other sources under the same names."""
    nodes = {
        name: replace(node, component=sources[name]) if name in sources else node
        for name, node in plan.nodes.items()
    }
    return replace(plan, nodes=nodes)


def apart(plan: Plan, state: Path) -> Plan:
    """The plan with sources that keep what they remember in another state directory."""
    sources: dict[str, Source[Any]] = {}
    for node in plan.of("source"):
        old = node.source
        new = type(old)(old.config, replace(old.context, state=state / "nodes" / node.name))
        new.format, new.columns = old.format, old.columns
        new.metadata_columns = old.metadata_columns
        sources[node.name] = new
    return replace(fed(plan, sources), state=state)


def _tap(node: Node, name: str, capture: Capture) -> Node:
    if node.kind == "sink":
        return replace(node, component=capture)
    spec = SinkSpec.model_validate({"type": "capture", "from": node.name})
    return Node(name, "sink", capture, spec, (node.name,), node.where)
