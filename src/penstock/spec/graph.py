"""The graph of nodes: unique names, existing inputs, no cycles."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

from penstock.core.errors import SpecError
from penstock.core.location import Location
from penstock.core.names import node_name_problem, pipeline_name_problem, sink_key
from penstock.core.text import did_you_mean, shorten
from penstock.spec.parsed import MissingParts
from penstock.spec.source_map import Route, SourceMap, SourceValue, find_map, find_texts

_KINDS = {"sources": "source", "transforms": "transform", "sinks": "sink"}


@dataclass(frozen=True)
class NodeRef:
    """A node by name, with its kind, its route and its inputs: the names in `from`, and the table
    of a `lookup`.

    `key` is unique: the name, but for a sink with the name of a source or a transform. `outputs`
    are the names of the outputs of a router.
    """

    name: str
    key: str
    kind: str
    route: Route
    data: Any
    inputs: tuple[tuple[Route, SourceValue], ...]
    outputs: tuple[str, ...] = ()

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs."""
        return [value.data for _, value in self.inputs]

    @property
    def readable(self) -> tuple[str, ...]:
        """The names by which other nodes read the node."""
        if self.kind == "sink":
            return ()
        return tuple(f"{self.name}.{output}" for output in self.outputs) or (self.name,)


def list_nodes(source_map: SourceMap) -> list[NodeRef]:
    """Returns all nodes in the order of the file."""
    nodes: list[NodeRef] = []
    for section, kind in _KINDS.items():
        readable = {node.name for node in nodes if node.kind != "sink"}
        for name, data in find_map(source_map, (section,)).items():
            key = sink_key(name) if kind == "sink" and name in readable else name
            nodes.append(_node_ref(source_map, kind, key, (section, name), data))
    return nodes


def readable_names(nodes: Iterable[NodeRef]) -> frozenset[str]:
    """Returns the names that `from` and SQL can have: of sources, transforms and outputs."""
    return frozenset(name for node in nodes for name in node.readable)


def is_dynamic_table(node: NodeRef) -> bool:
    """Returns whether a node is a dynamic table, whose values SQL checks."""
    is_map = isinstance(node.data, dict)
    return node.kind == "transform" and is_map and node.data.get("type") == "dynamic_table"


def _node_ref(
    source_map: SourceMap, kind: str, key: str, route: tuple[str, str], data: Any
) -> NodeRef:
    inputs = [*find_texts(source_map, (*route, "from"))] if isinstance(data, dict) else []
    if inputs and kind == "transform" and data.get("type") == "lookup":
        inputs += find_texts(source_map, (*route, "table"))
    outputs = _outputs(source_map, route) if kind == "transform" else ()
    return NodeRef(route[1], key, kind, route, data, tuple(inputs), tuple(outputs))


def _outputs(source_map: SourceMap, route: tuple[str, str]) -> Iterator[str]:
    """Yields the names of the outputs of a router; none for another transform."""
    if next((value.data for _, value in find_texts(source_map, (*route, "type"))), None) == "route":
        yield from find_map(source_map, (*route, "outputs"))
        yield from (value.data for _, value in find_texts(source_map, (*route, "default")))


def check_graph(
    source_map: SourceMap, *, complete: bool = True, missing: MissingParts | None = None
) -> Iterator[SpecError]:
    """Yields the errors of names and of `from`.

    Unknown inputs are errors only if the pipeline is `complete`, and if they are not `missing`.
    """
    nodes = list_nodes(source_map)
    yield from _check_names(source_map, nodes)
    yield from _check_inputs(source_map, nodes, complete, missing)
    yield from _find_cycles(source_map, nodes)


def _check_names(source_map: SourceMap, nodes: list[NodeRef]) -> Iterator[SpecError]:
    for route, name in find_texts(source_map, ("name",)):
        yield from _invalid(name.text, pipeline_name_problem(name.text), source_map.value(route))
    seen: dict[str, NodeRef] = {}
    for node in nodes:
        where = source_map.key(node.route)
        yield from _invalid(node.name, node_name_problem(node.name), where)
        first = seen.setdefault(node.name.casefold(), node)
        is_distinct = first.name == node.name and first.key != node.key
        if first is not node and not is_distinct:
            yield _duplicate_name(source_map, first, node)


def _invalid(name: str, problem: str | None, where: Location) -> Iterator[SpecError]:
    if problem:
        valid_name = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
        is_valid = valid_name and node_name_problem(valid_name) is None
        yield SpecError(
            f'"{shorten(name, 40)}" is not a valid name: {problem}',
            code="invalid-name",
            where=where,
            hint=f'write "{valid_name}"' if is_valid else None,
        )


def _duplicate_name(source_map: SourceMap, first: NodeRef, second: NodeRef) -> SpecError:
    same_case = first.name == second.name
    return SpecError(
        f'duplicate name "{second.name}"'
        if same_case
        else f'the names "{first.name}" and "{second.name}" differ only in case',
        code="duplicate-name",
        where=source_map.key(second.route),
        hint=f"rename one of the nodes; the {first.kind} is at {source_map.key(first.route)}",
    )


def _check_inputs(
    source_map: SourceMap, nodes: list[NodeRef], complete: bool, missing: MissingParts | None
) -> Iterator[SpecError]:
    readable = readable_names(nodes)
    routers = {node.name: node for node in nodes if node.outputs}
    sinks = {node.name for node in nodes if node.kind == "sink"}
    for node in nodes:
        if node.kind == "source":
            continue
        yield from _duplicate_inputs(source_map, node)
        for route, value in node.inputs:
            if value.data in readable:
                continue
            if value.data in sinks:
                yield SpecError(
                    f'{node.kind} "{node.name}" cannot read "{value.written}", which is a sink',
                    code="reads-sink",
                    where=source_map.value(route),
                    hint="read the input of the sink instead",
                )
            elif (router := routers.get(value.data.partition(".")[0])) is not None:
                yield _unknown_output(node, router, value, source_map.value(route))
            elif complete and not (missing and missing.may_have(value.data)):
                yield SpecError(
                    f'{node.kind} "{node.name}" reads "{value.written}", '
                    "which is not a source or transform",
                    code="unknown-input",
                    where=source_map.value(route),
                    hint=did_you_mean(value.data, readable - {node.key}),
                )


def _unknown_output(
    node: NodeRef, router: NodeRef, value: SourceValue, where: Location
) -> SpecError:
    """Returns the error of a node that reads a router, or an output that the router lacks."""
    _, dot, output = value.data.partition(".")
    subject = f'{node.kind} "{node.name}" reads "{value.written}"'
    if dot:
        message = f'{subject}, and "{router.name}" has no output "{output}"'
    else:
        message = f"{subject}, whose rows are in its outputs"
    hint = did_you_mean(value.data, router.readable)
    return SpecError(message, code="unknown-input", where=where, hint=hint)


def _duplicate_inputs(source_map: SourceMap, node: NodeRef) -> Iterator[SpecError]:
    for index, (route, value) in enumerate(node.inputs):
        if value.data in node.input_names[:index]:
            yield SpecError(
                f'{node.kind} "{node.name}" reads "{value.written}" twice',
                code="duplicate-input",
                where=source_map.value(route),
                hint="remove the second name",
            )


def _find_cycles(source_map: SourceMap, nodes: list[NodeRef]) -> Iterator[SpecError]:
    transforms = {node.name: node for node in nodes if node.kind == "transform"}
    owners = {name: node.name for node in nodes for name in node.readable}
    graph = {
        name: {owners.get(input_, input_) for input_ in node.input_names}
        for name, node in transforms.items()
    }
    while cycle := find_cycle(graph):
        first = min(cycle, key=list(transforms).index)
        start = cycle.index(first)
        cycle = [*cycle[start:-1], *cycle[:start], first]
        inputs = transforms[first].inputs
        route = next(
            route for route, value in inputs if owners.get(value.data, value.data) == cycle[-2]
        )
        yield cycle_error(cycle, source_map.value(route))
        graph = {name: inputs for name, inputs in graph.items() if name not in cycle}


def find_cycle(graph: dict[str, set[str]]) -> list[str]:
    """Returns the names of one cycle in a map of node to inputs, or an empty list.

    Each name is an input of the next name. The last name equals the first name.
    """
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def cycle_error(cycle: list[str], where: Location | None) -> SpecError:
    """Returns the error of a cycle. The last name equals the first name."""
    return SpecError(
        f"the pipeline contains a cycle: {' -> '.join(cycle)}", code="cycle", where=where
    )
