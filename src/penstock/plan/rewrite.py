"""Plans derived from a plan: other sources, state directories and tables, owned sinks."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.connectors.sqlite.state_table import StateTable, StateTableSink
from penstock.plan.model import Plan
from penstock.plan.node import Node
from penstock.sdk import LookupSource, Source


def replace_sources(plan: Plan, sources: Mapping[str, Source[Any]]) -> Plan:
    """Returns the plan with other source components under the same names."""
    nodes = {
        name: replace(node, component=sources[name]) if name in sources else node
        for name, node in plan.nodes.items()
    }
    return replace(plan, nodes=nodes)


def isolate_state(plan: Plan, state: Path) -> Plan:
    """Returns the plan with sources that keep their state below another directory.

    A dynamic table has the values of its database, and those that the plan adds to the state.
    """
    tables = {
        node.name: None if node.in_state else node.source
        for node in plan.of("source")
        if node.dynamic_table is not None
    }
    sources = {
        node.name: node.source.with_state(state / "nodes" / node.name)
        for node in plan.of("source")
        if node.name not in tables
    }
    return isolate_tables(replace(replace_sources(plan, sources), state=state), tables)


def isolate_tables(plan: Plan, values: Mapping[str, Source[Any] | None]) -> Plan:
    """Returns the plan with dynamic tables that have `values`, and are filled in its state.

    No database is written.
    """
    nodes = {}
    for name, node in plan.nodes.items():
        table = node.dynamic_table
        if table is not None and node.kind != "transform":
            context = replace(node.component.context, state=plan.state / "nodes" / table)
            if node.kind == "source":
                columns, other = node.source.columns, values.get(table)
                assert columns is not None and (other is None or isinstance(other, LookupSource))
                node = replace(node, component=StateTable(context, columns, other))
            else:
                sink = StateTableSink(context)
                sink.mode, sink.primary_key = node.sink.mode, node.sink.primary_key
                node = replace(node, component=sink)
        nodes[name] = node
    return replace(plan, nodes=nodes)


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
