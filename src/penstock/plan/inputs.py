"""Inputs of nodes: names in options and in SQL become edges of the graph of a plan."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush

from penstock.core.errors import PenstockError, PlanError
from penstock.core.location import Location
from penstock.core.text import did_you_mean, line_and_column
from penstock.plan.node import Node
from penstock.plan.node_errors import node_error
from penstock.plan.table_checks import declared_tables, with_checked_tables
from penstock.spec.graph import list_nodes, readable_names
from penstock.spec.validate import Pipeline

Nodes = dict[str, Node]
Relations = Mapping[str, frozenset[str] | None]
"""The relations that the SQL of each node names; None for a node without SQL."""


def resolve_inputs(
    nodes: Nodes, pipeline: Pipeline, errors: list[PenstockError], invalid: set[str]
) -> Nodes:
    """Returns the nodes with their inputs, in topological order, without cycles.

    Adds errors of inputs to `errors`, and the names of nodes with such errors to `invalid`.
    """
    return _Inputs(pipeline, errors, invalid).resolve(nodes)


@dataclass
class _Inputs:
    pipeline: Pipeline
    errors: list[PenstockError]
    invalid: set[str]

    def __post_init__(self) -> None:
        self.source_map = self.pipeline.source_map

    def resolve(self, nodes: Nodes) -> Nodes:
        missing = self.pipeline.missing
        nodes_of_file = list_nodes(self.source_map)
        known = readable_names(nodes_of_file) | (missing.names if missing else frozenset())
        relations = {
            name: node.query_transform.named_inputs(known) if node.query_transform else None
            for name, node in nodes.items()
        }
        connected = {}
        tables = [*declared_tables(self.pipeline)]
        for name, node in nodes.items():
            count = len(self.errors)
            node = self._with_inputs(node, known, nodes, relations)
            if name not in self.invalid or node.query_transform is not None:
                node = with_checked_tables(node, tables, self.pipeline, self.errors)
            connected[name] = node
            if len(self.errors) > count:
                self.invalid.add(name)
        while True:
            try:
                return {name: connected[name] for name in _topological_order(connected)}
            except CycleError as error:
                cycle = _rotate(error.args[1][:-1], list(connected))
            if any(connected[name].query_transform is not None for name in cycle):
                self._add_cycle(_written_cycle(cycle, connected), connected[cycle[0]])
            connected = {name: node for name, node in connected.items() if name not in cycle}

    def _add_cycle(self, cycle: list[str], first: Node) -> None:
        self.errors.append(
            PlanError(
                f"the pipeline contains a cycle: {' -> '.join([*cycle, cycle[0]])}",
                code="cycle",
                where=first.where,
            )
        )

    def _with_inputs(
        self, node: Node, known: frozenset[str], nodes: Nodes, read: Relations
    ) -> Node:
        """Returns a node with its inputs. `read` are the relations in the SQL of each node."""
        relations = read[node.name]
        if relations is not None:
            if self.pipeline.complete and relations - known:
                named = frozenset(
                    name
                    for name in known - {node.name, node.dynamic_table}
                    if name not in nodes or nodes[name].is_named
                )
                self._report_unknown_relations(node, relations - known, named)
            elif relations - known:
                self.invalid.add(node.name)
            node = replace(node, inputs=tuple(sorted(relations & known)))
        inputs = len(set(node.inputs))
        damaged = node.route in self.pipeline.damaged
        if damaged and inputs < 2:
            return node
        if node.kind == "transform" and not inputs and not relations:
            if relations is not None and not self._has_sources:
                self.invalid.add(node.name)
                return node
            others = sorted(known - _downstream(node.name, nodes, read))
            hint = f"Name a source or transform in the SQL: {', '.join(others)}."
            hint = "Add from: NAME." if relations is None else hint
            self.errors.append(node_error(node, "reads nothing", "missing-option", hint))
        elif node.kind == "sink" and not inputs:
            hint = "Add from: NAME."
            self.errors.append(node_error(node, "reads nothing", "missing-option", hint))
        elif inputs > 1 and (node.batch_function is not None or node.kind == "sink"):
            problem = f"expected one input, found {inputs}"
            hint = "Combine the inputs with SQL: SELECT * FROM a UNION ALL SELECT * FROM b."
            self.errors.append(node_error(node, problem, "too-many-inputs", hint))
        return node

    @property
    def _has_sources(self) -> bool:
        return any(node.kind == "source" for node in list_nodes(self.source_map))

    def _report_unknown_relations(
        self, node: Node, unknown: frozenset[str], known: frozenset[str]
    ) -> None:
        for name in sorted(unknown):
            where = node.where
            for sql in node.sql_texts:
                path = (*node.route, *sql.route)
                where = self.source_map.value(path)
                match = re.search(_relation_pattern(name), sql.written, re.IGNORECASE)
                if match:
                    position = line_and_column(sql.written, match.start())
                    where = self.source_map.inside(path, *position, len(name))
                    break
            self.errors.append(self._unknown_relation(node, name, known, where))

    def _unknown_relation(
        self, node: Node, name: str, known: Collection[str], where: Location | None
    ) -> PlanError:
        nodes = list_nodes(self.source_map)
        sinks = {sink.name.lower() for sink in nodes if sink.kind == "sink"}
        if name.lower() in sinks:
            return PlanError(
                f'{node.label} cannot read "{name}", which is a sink',
                code="reads-sink",
                hint="read the input of the sink instead",
                where=where,
            )
        return PlanError(
            f'there is no source or transform "{name}"',
            code="unknown-node",
            hint=did_you_mean(name, known) or "create the table with CREATE TABLE ... WITH",
            where=where,
        )


def _relation_pattern(name: str) -> str:
    """Returns the pattern of a name, in quotes or not, that is not a word of a name in quotes."""
    escaped = re.escape(name)
    return rf"""(?<=[`"]){escaped}(?=[`"])|(?<![\w`"]){escaped}(?!\w)"""


def _downstream(name: str, nodes: Nodes, read: Relations) -> set[str]:
    """Returns the names of a node, of the nodes that read it, and of their readers."""
    found, added = set[str](), {name}
    while added:
        found |= added
        added = {
            reader
            for reader, node in nodes.items()
            if not found.isdisjoint(read[reader] or node.inputs)
        } - found
    return found


def _topological_order(nodes: Nodes) -> Iterator[str]:
    """Yields the names, each after its inputs and after the fills of the tables that it checks.

    Otherwise they are in the order of `nodes`. Raises CycleError.
    """
    position = {name: index for index, name in enumerate(nodes)}
    fills = {node.dynamic_table: name for name, node in nodes.items() if node.kind == "sink"}
    sorter = TopologicalSorter(
        {
            name: [
                before
                for before in (*node.inputs, *(fills.get(t, t) for t in node.checked_tables))
                if before in nodes
            ]
            for name, node in nodes.items()
        }
    )
    sorter.prepare()
    ready: list[tuple[int, str]] = []
    while sorter.is_active():
        for name in sorter.get_ready():
            heappush(ready, (position[name], name))
        _, name = heappop(ready)
        yield name
        sorter.done(name)


def _written_cycle(cycle: list[str], nodes: Nodes) -> list[str]:
    """Returns the names of a cycle in the file, where the parts of a dynamic table have one."""
    return [*dict.fromkeys(nodes[name].dynamic_table or name for name in cycle)]


def _rotate(cycle: list[str], order: list[str]) -> list[str]:
    """Returns the cycle from its first node in the file."""
    start = cycle.index(min(cycle, key=order.index))
    return [*cycle[start:], *cycle[:start]]
