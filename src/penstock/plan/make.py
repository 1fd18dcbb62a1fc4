"""From a pipeline to a plan: every name resolved, every component's options checked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from penstock.core.errors import PenstockError, PlanError, raise_all
from penstock.core.location import Location
from penstock.core.text import did_you_mean, line_and_column
from penstock.plan import rules
from penstock.plan.components import Components
from penstock.plan.graph import ordered
from penstock.plan.model import Node, Plan
from penstock.plan.queries import make_queries
from penstock.sdk import Sink
from penstock.spec.document import Scalar
from penstock.spec.models import SinkSpec
from penstock.spec.validate import Pipeline

Nodes = dict[str, Node]


def make_plan(pipeline: Pipeline, mistakes: Iterable[PenstockError] = ()) -> Plan:
    """The static plan of a pipeline: no session, no network, nothing read but module files.

    Raises UserError or Mistakes with everything that is wrong, in one go, together with the
    `mistakes` that are known already.
    """
    return _Maker(pipeline, mistakes).plan()


class _Maker:
    def __init__(self, pipeline: Pipeline, mistakes: Iterable[PenstockError]) -> None:
        self.pipeline = pipeline
        self.spec = pipeline.spec
        self.document = pipeline.document
        self.mistakes = list(mistakes)
        self.shape_is_wrong = bool(self.mistakes)
        self.state = self.document.root.base / self.spec.runtime.state / pipeline.name
        self.components = Components(pipeline.name, self.document, self.state, self.mistakes)

    def plan(self) -> Plan:
        nodes = self._nodes()
        dead_letter = self._dead_letter()
        if self.shape_is_wrong:
            raise_all(self.mistakes)
        nodes = self._connected(nodes)
        raise_all(self.mistakes)
        plan = Plan(
            self.pipeline, nodes, (), self.state, dead_letter, tuple(self.pipeline.warnings)
        )
        plan = replace(plan, nodes=_with_state_told(nodes, plan.streams))
        self.mistakes.extend(rules.something_streams(plan))
        raise_all(self.mistakes)
        plan = replace(plan, queries=make_queries(plan.nodes, plan.streams))
        for query in plan.queries:
            for name in query.sinks if query.output_mode == "update" else ():
                plan.nodes[name].sink.mode = "upsert"
        for rule in rules.ALL:
            self.mistakes.extend(rule(plan))
        raise_all(self.mistakes)
        return plan

    def _nodes(self) -> Nodes:
        nodes: Nodes = {}
        for name, source in self.spec.sources.items():
            if made := self.components.make(("sources", name), "source", name, source):
                nodes[name] = Node(name, "source", made, source, (), self._key("sources", name))
        for name, step in self.spec.transforms.items():
            if made := self.components.make(("transforms", name), "transform", name, step):
                inputs, where = tuple(step.inputs), self._key("transforms", name)
                nodes[name] = Node(name, "transform", made, step, inputs, where)
        for name, sink in self.spec.sinks.items():
            if made := self.components.make(("sinks", name), "sink", name, sink):
                inputs, where = tuple(sink.inputs), self._key("sinks", name)
                nodes[name] = Node(name, "sink", made, sink, inputs, where)
        return nodes

    def _dead_letter(self) -> Node | None:
        spec = self.spec.dead_letter
        if spec is None:
            return None
        component = self.components.make(("dead_letter",), "sink", "dead_letter", spec)
        if not isinstance(component, Sink):
            return None
        as_sink = SinkSpec.model_validate(
            {"type": spec.type, "from": "dead_letter", "format": spec.format, "on_error": "fail"}
        )
        where = self.document.key(("dead_letter",))
        return Node("dead_letter", "sink", component, as_sink, (), where)

    def _connected(self, nodes: Nodes) -> Nodes:
        """The nodes with their inputs, each after its inputs."""
        known = frozenset([*self.spec.sources, *self.spec.transforms])
        connected = {name: self._with_inputs(node, known) for name, node in nodes.items()}
        order, cycle = ordered({name: node.inputs for name, node in connected.items()})
        if cycle:
            self.mistakes.append(
                PlanError(
                    f"these nodes read each other: {' <- '.join(cycle)}",
                    code="cycle",
                    where=connected[cycle[0]].where,
                )
            )
            return connected
        return {name: connected[name] for name in order}

    def _with_inputs(self, node: Node, known: frozenset[str]) -> Node:
        named = node.relation.inputs(known) if node.relation else None
        if named is not None:
            self._unknown_relations(node, named - known, known)
            node = replace(node, inputs=tuple(sorted(named & known)))
        inputs = len(node.inputs)
        if node.kind == "transform" and not inputs and not named:
            self._mistake(
                node, "reads nothing", "missing-option",
                "add from: NAME" if named is None
                else f"the SQL names no source or transform; known: {', '.join(sorted(known))}",
            )  # fmt: skip
        elif inputs > 1 and (node.batch_function is not None or node.kind == "sink"):
            self._mistake(
                node, f"reads one node, not {inputs}", "too-many-inputs",
                "bring them together with SQL: SELECT * FROM a UNION ALL SELECT * FROM b",
            )  # fmt: skip
        return node

    def _unknown_relations(
        self, node: Node, unknown: frozenset[str], known: frozenset[str]
    ) -> None:
        route = ("transforms", node.name, "sql")
        text = self.document.find(route)
        sql = str(node.component.config.sql)
        for name in sorted(unknown):
            where = self.document.value(route)
            found = re.search(rf"\b{re.escape(name)}\b", sql, re.IGNORECASE)
            if found and isinstance(text, Scalar):
                where = text.place(*line_and_column(sql, found.start()), len(name))
            self.mistakes.append(
                PlanError(
                    f'there is no source or transform "{name}"',
                    code="unknown-node",
                    hint=did_you_mean(name, known),
                    where=where,
                )
            )

    def _mistake(self, node: Node, problem: str, code: str, hint: str) -> None:
        self.mistakes.append(
            PlanError(f"{node.label} {problem}", code=code, hint=hint, where=node.where)
        )

    def _key(self, section: str, name: str) -> Location:
        return self.document.key((section, name))


def _with_state_told(nodes: Nodes, streams: frozenset[str]) -> Nodes:
    told = {}
    for name, node in nodes.items():
        streaming = frozenset(node.inputs) & streams
        stateful = bool(node.relation and streaming and node.relation.stateful(streaming))
        told[name] = replace(node, stateful=stateful)
    return told
