"""Plans derived from a plan: other sources, other state directories, owned sinks."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.plan.model import Node, Plan
from penstock.sdk import Source


def replace_sources(plan: Plan, sources: Mapping[str, Source[Any]]) -> Plan:
    """Returns the plan with other source components under the same names."""
    nodes = {
        name: replace(node, component=sources[name]) if name in sources else node
        for name, node in plan.nodes.items()
    }
    return replace(plan, nodes=nodes)


def isolate_state(plan: Plan, state: Path) -> Plan:
    """Returns the plan with sources that keep their state below another directory."""
    sources = {
        node.name: node.source.with_state(state / "nodes" / node.name) for node in plan.of("source")
    }
    return replace(replace_sources(plan, sources), state=state)


def assign_owner(plan: Plan, owner: str) -> Plan:
    """Returns the plan with sinks that write as `owner`, the ID of a state directory."""
    nodes = {
        name: _owned(node, owner) if node.kind == "sink" else node
        for name, node in plan.nodes.items()
    }
    dead_letter = None if plan.dead_letter is None else _owned(plan.dead_letter, owner)
    return replace(plan, nodes=nodes, dead_letter=dead_letter)


def _owned(node: Node, owner: str) -> Node:
    sink = copy.copy(node.sink)
    sink.context = replace(sink.context, owner=owner)
    return replace(node, component=sink)
