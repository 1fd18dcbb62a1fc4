"""From a pipeline to a plan: every name resolved, every component's options checked."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from penstock.core.errors import PenstockError, PlanError, raise_all
from penstock.core.location import Location
from penstock.core.text import did_you_mean, line_and_column
from penstock.plan import rules
from penstock.plan.graph import ordered
from penstock.plan.model import Node, Plan
from penstock.plan.queries import make_queries
from penstock.sdk import Capability, Component, Context, Format, Relation, Sink, Source, registry
from penstock.sdk.kit.ddl import arrow_schema
from penstock.sdk.registry import Kind
from penstock.spec.document import Scalar
from penstock.spec.models import (
    DeadLetterSpec,
    SinkSpec,
    SourceSpec,
    TransformSpec,
)
from penstock.spec.validate import Pipeline, translate

Spec = SourceSpec | TransformSpec | SinkSpec | DeadLetterSpec
Path_ = tuple[str | int, ...]


def make_plan(pipeline: Pipeline) -> Plan:
    """The static plan of a pipeline: no session, no network, nothing read but module files.

    Raises UserError or Mistakes with everything that is wrong, in one go.
    """
    return _Maker(pipeline).plan()


class _Maker:
    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.spec = pipeline.spec
        self.document = pipeline.document
        self.mistakes: list[PenstockError] = []
        self.state = self._state_directory()

    def plan(self) -> Plan:
        nodes: dict[str, Node] = {}
        for section, kind, specs in (
            ("sources", "source", self.spec.sources),
            ("transforms", "transform", self.spec.transforms),
            ("sinks", "sink", self.spec.sinks),
        ):
            for name, spec in specs.items():
                node = self._node((section, name), kind, name, spec)  # type: ignore[arg-type]
                if node is not None:
                    nodes[name] = node
        dead_letter = self._dead_letter()
        raise_all(self.mistakes)
        nodes = self._connected(nodes)
        raise_all(self.mistakes)
        plan = Plan(
            self.pipeline, nodes, (), self.state, dead_letter,
            tuple(self.pipeline.warnings),
        )  # fmt: skip
        plan = self._with_state_told(plan)
        for rule in rules.ALL:
            self.mistakes.extend(rule(plan))
        raise_all(self.mistakes)
        return replace(plan, queries=make_queries(plan.nodes, plan.streams))

    def _state_directory(self) -> Path:
        base = self._base(("runtime", "state"))
        return (base / Path(self.spec.runtime.state).expanduser()) / self.pipeline.name

    def _node(self, path: Path_, kind: Kind, name: str, spec: Any) -> Node | None:
        before = len(self.mistakes)
        component = self._component(path, kind, name, spec)
        if component is None:
            return None
        if isinstance(component, Source):
            self._prepare_source(component, path, spec)
        elif isinstance(component, Sink):
            self._prepare_sink(component, path, spec)
        if len(self.mistakes) > before:
            return None
        inputs = tuple(getattr(spec, "inputs", ()))
        return Node(name, kind, component, spec, inputs, self._where(path))  # type: ignore[arg-type]

    def _component(
        self, path: Path_, kind: Kind, name: str, spec: Any, options: dict[str, Any] | None = None
    ) -> Component[Any] | None:
        try:
            found = registry.find(kind, spec if isinstance(spec, str) else spec.type)
        except PenstockError as error:
            error.where = self._where((*path, "type")) or self._where(path)
            self.mistakes.append(error)
            return None
        given = options if options is not None else spec.options
        context = Context(self.pipeline.name, name, self.state / "nodes" / name, self._base(path))
        try:
            return found(found.config_type.model_validate(given), context)
        except ValidationError as error:
            type_ = spec if isinstance(spec, str) else spec.type
            subject = f'{kind} "{name}" (type: {type_})' if kind != "format" else f"format {type_}"
            self.mistakes += translate(error, self.document, path, found.config_type, subject)
            return None

    def _format(self, path: Path_, given: str | dict[str, Any]) -> Format[Any] | None:
        options = {} if isinstance(given, str) else {k: v for k, v in given.items() if k != "type"}
        type_ = given if isinstance(given, str) else given.get("type")
        if not isinstance(type_, str):
            self._mistake(
                path,
                "a format needs a type",
                "missing-option",
                did_you_mean("", registry.types("format")),
            )
            return None
        component = self._component(path, "format", str(path[-2]), str(type_), options)
        return component if isinstance(component, Format) else None

    def _prepare_source(self, source: Source[Any], path: Path_, spec: SourceSpec) -> None:
        given = spec.format if spec.format is not None else source.format_for()
        if given is not None:
            source.format = self._format((*path, "format"), given)
        elif Capability.BYTES in source.capabilities:
            self._mistake(
                path, "a format is missing: how do payloads become rows?", "missing-option",
                f"add format: {', '.join(registry.types('format'))}",
            )  # fmt: skip
        if spec.columns is not None:
            source.columns = self._columns((*path, "schema"), spec.columns)
        elif source.format is not None:
            source.columns = self._guarded((*path, "format"), source.format.declared)
        if source.columns is None:
            source.columns = self._guarded(path, source.schema)
        source.metadata_columns = self._metadata(source, path, spec)

    def _metadata(self, source: Source[Any], path: Path_, spec: SourceSpec) -> dict[str, str]:
        wanted = spec.metadata
        columns = wanted if isinstance(wanted, dict) else {name: name for name in wanted}
        known = source.metadata().names
        for column, name in columns.items():
            if name not in known:
                key: str | int = column if isinstance(wanted, dict) else list(wanted).index(name)
                self._mistake(
                    (*path, "metadata", key), f'there is no metadata "{name}"', "unknown-metadata",
                    did_you_mean(name, known) if known else "this source has none",
                )  # fmt: skip
        return columns

    def _columns(self, path: Path_, given: str | dict[str, str]) -> Any:
        return self._guarded(path, lambda: arrow_schema(given))

    def _prepare_sink(self, sink: Sink[Any], path: Path_, spec: SinkSpec | DeadLetterSpec) -> None:
        given = spec.format if spec.format is not None else sink.format_for()
        if given is not None:
            sink.format = self._format((*path, "format"), given)

    def _guarded(self, path: Path_, call: Any) -> Any:
        try:
            return call()
        except PenstockError as error:
            error.where = error.where or self._where(path)
            self.mistakes.append(error)
            return None

    def _dead_letter(self) -> Node | None:
        spec = self.spec.dead_letter
        if spec is None:
            return None
        component = self._component(("dead_letter",), "sink", "dead_letter", spec)
        if not isinstance(component, Sink):
            return None
        self._prepare_sink(component, ("dead_letter",), spec)
        as_sink = SinkSpec.model_validate(
            {"type": spec.type, "from": "dead_letter", "format": spec.format, "on_error": "fail"}
        )
        return Node("dead_letter", "sink", component, as_sink, (), self._where(("dead_letter",)))

    def _connected(self, nodes: dict[str, Node]) -> dict[str, Node]:
        """The nodes with their inputs, each after its inputs."""
        known = frozenset(name for name, node in nodes.items() if node.kind != "sink")
        connected = {}
        for name, node in nodes.items():
            inputs = node.inputs
            if isinstance(node.component, Relation):
                read = node.component.inputs(known)
                if read is not None:
                    inputs = tuple(n for n in nodes if n in read)
                    self._unknown_relations(node, read - known, known)
            if node.kind == "transform" and not inputs:
                self._mistake(
                    ("transforms", name), f"{node.label} reads nothing", "missing-option",
                    "add from: NAME" if not (node.relation and node.relation.inputs(known) is not None) else
                    f"the SQL names no source or transform; known: {', '.join(sorted(known))}",
                )  # fmt: skip
            elif (
                (node.batch_function is not None
                and len(inputs) != 1)
                or (node.kind == "sink"
                and len(inputs) != 1)
            ):
                self._mistake(
                    (f"{node.kind}s", name, "from"), f"{node.label} reads one node, not {len(inputs)}",
                    "too-many-inputs", "bring them together with SQL: SELECT * FROM a UNION ALL SELECT * FROM b",
                )  # fmt: skip
            connected[name] = replace(node, inputs=inputs)
        order, cycle = ordered({name: node.inputs for name, node in connected.items()})
        if cycle:
            self._mistake(
                ("transforms", cycle[0]),
                f"these nodes read each other: {' <- '.join(cycle)}",
                "cycle",
            )
            return connected
        return {name: connected[name] for name in order}

    def _unknown_relations(
        self, node: Node, unknown: frozenset[str], known: frozenset[str]
    ) -> None:
        sql = str(node.component.config.sql)
        for name in sorted(unknown):
            found = re.search(rf"\b{re.escape(name)}\b", sql, re.IGNORECASE)
            where = self.document.value(("transforms", node.name, "sql"))
            text = self.document.find(("transforms", node.name, "sql"))
            if found and isinstance(text, Scalar):
                line, column = line_and_column(sql, found.start())
                where = text.place(line, column, len(name))
            self.mistakes.append(
                PlanError(
                    f'there is no source or transform "{name}"',
                    code="unknown-node",
                    hint=did_you_mean(name, known),
                    where=where,
                )  # fmt: skip
            )

    def _with_state_told(self, plan: Plan) -> Plan:
        streams = plan.streams
        nodes = {}
        for name, node in plan.nodes.items():
            streaming = frozenset(node.inputs) & streams
            stateful = bool(node.relation and streaming and node.relation.stateful(streaming))
            nodes[name] = replace(node, stateful=stateful)
        return replace(plan, nodes=nodes)

    def _mistake(self, path: Path_, message: str, code: str, hint: str | None = None) -> None:
        self.mistakes.append(PlanError(message, code=code, hint=hint, where=self._where(path)))

    def _where(self, path: Path_) -> Location:
        return self.document.value(path)

    def _base(self, path: Path_) -> Path:
        node = self.document.find(path)
        return node.base if node is not None else self.document.root.base
