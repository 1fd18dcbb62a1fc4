"""Plans whose nodes are captured in place of their sinks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from penstock.core.errors import PlanError
from penstock.core.text import did_you_mean
from penstock.plan.graph import upstream
from penstock.plan.model import Plan
from penstock.plan.node import Node
from penstock.plan.queries import make_queries
from penstock.runtime.capture_sink import Capture
from penstock.sdk import Context
from penstock.spec.node_models import SinkSpec


def capture_nodes(
    plan: Plan, names: Iterable[str], *, max_rows: int | None = None
) -> tuple[Plan, dict[str, Capture]]:
    """Returns the plan with captures at the named nodes as its only sinks, and the captures.

    Nodes that lead to no capture are removed. A capture replaces a named sink and keeps its mode.
    The fills of the dynamic tables that remain are sinks, too, and the capture of a fill has its
    input. A static node has no capture. Raises PlanError for an unknown name.
    """
    streams = plan.streams
    captures: dict[str, Capture] = {}
    sinks: dict[str, Node] = {}
    selected = list(dict.fromkeys(names))
    final_nodes = {name for query in plan.final_queries for name in query.batch_nodes}
    for name in selected:
        node = plan.nodes.get(name)
        if node is None:
            raise PlanError(
                f'there is no node "{name}"', code="unknown-node",
                hint=did_you_mean(name, plan.nodes),
            )  # fmt: skip
        if node.kind == "sink" and node.dynamic_table is not None:
            node = plan.nodes[node.inputs[0]]
        if name in streams:
            sink_name = name if node.kind == "sink" else f"@{name}"
            original = node.sink if node.kind == "sink" else None
            captures[name] = Capture(Context(plan.name, sink_name, None), original, max_rows)
            captures[name].operation = node.operation
            sinks[sink_name] = _capture_node(node, sink_name, captures[name], name in final_nodes)
    needed = upstream(sinks, {**plan.nodes, **sinks}) | set(upstream(selected, plan.nodes))
    needed |= {name for name in selected if plan.nodes[name].kind != "sink"}
    needed |= _tables_of(plan, needed)
    nodes = {name: node for name, node in plan.nodes.items() if name in needed} | sinks
    final = {query.name for query in plan.final_queries}
    queries = make_queries(nodes, streams | sinks.keys(), final)
    return replace(plan, nodes=nodes, queries=queries, dead_letter=None), captures


def _tables_of(plan: Plan, names: Iterable[str]) -> set[str]:
    """Returns the nodes of the dynamic tables that nodes check, and the nodes upstream."""
    found: set[str] = set()
    pending = [table for name in names for table in plan.nodes[name].checked_tables]
    while pending:
        table = pending.pop()
        fill = plan.fill_of(table)
        parts = {table} if fill is None else {table, fill.name} | upstream([fill.name], plan.nodes)
        added = parts - found
        found |= added
        pending += [each for name in added for each in plan.nodes[name].checked_tables]
    return found


def _capture_node(node: Node, name: str, capture: Capture, final: bool) -> Node:
    """Returns the sink that captures a node. `final` excludes rows that a later row replaces."""
    if node.kind == "sink":
        return replace(node, component=capture)
    mode = {"mode": "append"} if final else {}
    spec = SinkSpec.model_validate({"type": "capture", "from": node.name, **mode})
    return Node(name, "sink", capture, spec, (node.name,), node.where)
