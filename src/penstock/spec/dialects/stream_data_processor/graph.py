"""A graph of producers, nodes and consumers as the tree of a pipeline."""

from __future__ import annotations

from penstock.core.text import did_you_mean
from penstock.spec.dialects.options.declarations import Option, Options, options
from penstock.spec.dialects.options.reading import Findings, Reading
from penstock.spec.dialects.options.trees import Tree, to_node
from penstock.spec.dialects.stream_data_processor.chains import Chains, Handler, NodePlan
from penstock.spec.dialects.stream_data_processor.components import read_component
from penstock.spec.dialects.stream_data_processor.consumers import CONSUMERS, read_consumer
from penstock.spec.dialects.stream_data_processor.handlers import read_handlers
from penstock.spec.dialects.stream_data_processor.producers import (
    PRODUCERS,
    ProducerPlan,
    read_producer,
)
from penstock.spec.tree.nodes import Entry, MappingNode

TOP: Options = options("producers!:map", "nodes:map", "consumers!:map")
NODE: Options = options(
    Option("from", "any", True, reading="the producers or the node whose rows it handles"),
    "handlers!:list = `handlers`, with those of the nodes before",
)
"""The options of a node."""
_OWN = frozenset({
    "name", "tests", "runtime", "dead_letter", "variables", "include", "connections",
})  # fmt: skip
"""The keys of a pipeline that a graph may have."""
Sections = dict[str, dict[str, Tree]]


def to_pipeline(root: MappingNode, findings: Findings) -> MappingNode:
    """Returns the tree of the pipeline of a graph. Errors and warnings are in `findings`."""
    others = [entry for entry in root.entries if entry.name in _OWN]
    entries = tuple(entry for entry in root.entries if entry.name not in _OWN)
    top = Reading(MappingNode(entries, root.location, root.base), "the file", TOP, findings)
    sections = _Graph(top, findings).read()
    tree: dict[str, Tree] = {name: nodes for name, nodes in sections.items() if nodes}
    pipeline = to_node(tree, root, top.where("producers"))
    assert isinstance(pipeline, MappingNode)
    return MappingNode((*pipeline.entries, *others), pipeline.location, root.base)


class _Graph:
    def __init__(self, top: Reading, findings: Findings) -> None:
        self._top, self._findings = top, findings
        self._producers: dict[str, ProducerPlan] = {}
        self._nodes: dict[str, NodePlan] = {}

    def read(self) -> Sections:
        sections: Sections = {"sources": {}, "transforms": {}, "sinks": {}}
        for entry in self._entries("producers"):
            found = read_component(
                entry.value, "producer", PRODUCERS, self._findings, self._top.node
            )
            plan = None if found is None else read_producer(*found)
            if plan is not None:
                self._producers[entry.name] = plan
                sections["sources"][entry.name] = to_node(plan.source, entry.value)
        for entry in self._entries("nodes"):
            self._read_node(entry)
        self._check_nodes()
        if self._findings.errors:
            return {name: {} for name in sections}
        chains = Chains(self._producers, self._nodes, self._findings)
        for entry in self._entries("consumers"):
            self._read_consumer(entry, chains, sections)
        self._warn_of_unread(chains)
        return sections

    def _entries(self, section: str) -> tuple[Entry, ...]:
        node = self._top.get(section)
        return node.entries if isinstance(node, MappingNode) else ()

    def _read_node(self, entry: Entry) -> None:
        if not isinstance(entry.value, MappingNode):
            self._findings.error("expected a node, found no map", entry.value.location,
                                 code="wrong-type")  # fmt: skip
            return
        reading = Reading(entry.value, f'node "{entry.name}"', NODE, self._findings)
        if entry.name in self._producers:
            self._findings.error(
                f'a producer has the name "{entry.name}"', entry.key.location,
                code="duplicate-name",
            )  # fmt: skip
        found = read_handlers(reading.get("handlers"), self._findings, entry.value)
        handlers: list[Handler] = [*found]
        self._nodes[entry.name] = NodePlan(entry.key, reading, reading.texts("from"), handlers)

    def _check_nodes(self) -> None:
        """Reports unknown inputs and cycles."""
        names = [entry.name for s in ("producers", "nodes") for entry in self._entries(s)]
        for node in self._nodes.values():
            self._check_inputs(node.inputs, names, node.reading)
        for name, node in self._nodes.items():
            seen, above = {name}, list(node.inputs)
            while above:
                current = above.pop()
                if current == name:
                    self._findings.error(
                        f'node "{name}" reads its own output', node.key.location, code="cycle"
                    )
                elif current in self._nodes and current not in seen:
                    seen.add(current)
                    above += self._nodes[current].inputs

    def _check_inputs(self, inputs: list[str], names: list[str], reading: Reading) -> None:
        if not inputs and reading.get("from") is not None:
            self._findings.error(
                f'"from" of {reading.subject} expects a name', reading.where("from"),
                code="wrong-type",
            )  # fmt: skip
        for name in inputs:
            if name not in names:
                self._findings.error(
                    f'there is no producer and no node "{name}"', reading.where("from"),
                    code="unknown-input", hint=did_you_mean(name, names),
                )  # fmt: skip

    def _read_consumer(self, entry: Entry, chains: Chains, sections: Sections) -> None:
        found = read_component(entry.value, "consumer", CONSUMERS, self._findings, self._top.node)
        if found is None:
            return
        _, reading = found
        inputs = reading.texts("from")
        self._check_inputs(inputs, [*self._producers, *self._nodes], reading)
        if len(inputs) > 1:
            reading.reject("from", "a consumer reads one node", "add a consumer for each node")
        if self._findings.errors:
            return
        source = chains.output(inputs[0], sections["transforms"])
        sinks = read_consumer(*found)
        for number, sink in enumerate(sinks):
            name = entry.name if len(sinks) == 1 else f"{entry.name}_{number + 1}"
            sections["sinks"][name] = to_node({**sink, "from": source}, entry.value)

    def _warn_of_unread(self, chains: Chains) -> None:
        for name, node in self._nodes.items():
            if name not in chains.read:
                self._findings.warn(
                    f'no consumer reads node "{name}"', node.key.location, code="unused-transform"
                )
