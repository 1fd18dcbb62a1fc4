"""Planning: the nodes and queries of a pipeline, and all errors in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from penstock.core.errors import PenstockError, raise_all
from penstock.core.names import written_name
from penstock.plan import rules
from penstock.plan.assumed_columns import assumed_columns
from penstock.plan.components import Components
from penstock.plan.conditional_sinks import conditional_sinks_of_results
from penstock.plan.dialect import translate_queries
from penstock.plan.dynamic_tables import DynamicTables
from penstock.plan.functions import functions_of, resolve
from penstock.plan.inputs import Nodes, resolve_inputs
from penstock.plan.model import Observer, Plan
from penstock.plan.node import Node
from penstock.plan.operation_columns import configure_sinks, inherit
from penstock.plan.plugins import (
    file_functions,
    local_components,
    package_functions,
    server_functions,
)
from penstock.plan.queries import find_final_roots, find_roots, make_queries
from penstock.plan.side_outputs import check_side_outputs, observed_by
from penstock.plan.sink_keys import key_rows_of_sinks
from penstock.plan.state_location import locate_state
from penstock.plan.state_rules import executors_store_nothing
from penstock.plan.unbounded_state import find_unbounded_state
from penstock.plan.unencrypted_connections import unencrypted_connections
from penstock.sdk import SideOutput, Sink, Source, registry
from penstock.spec.graph import list_nodes
from penstock.spec.node_models import SinkSpec, SourceSpec, TransformSpec
from penstock.spec.source_map import locate_error
from penstock.spec.valid_part import invalid_values
from penstock.spec.validate import Pipeline
from penstock.transforms.dynamic_table import DynamicTable
from penstock.transforms.route import Route

Kind = Literal["source", "transform", "sink"]


@dataclass(frozen=True)
class PartialPlan:
    """The valid part of a plan, and all errors of the pipeline.

    The part contains each valid node whose inputs are in the part. `placeholder_sources` are
    sources with wrong options and valid declared columns: only their columns can be used.
    `downstream_of_errors` are the valid transforms that read a node with an error.
    """

    plan: Plan
    errors: tuple[PenstockError, ...]
    placeholder_sources: frozenset[str] = frozenset()
    downstream_of_errors: tuple[Node, ...] = ()


def make_plan(pipeline: Pipeline, errors: Iterable[PenstockError] = ()) -> PartialPlan:
    """Creates the static plan of the valid part of a pipeline, without session or network access.

    The result has all errors, including those of the files.
    """
    planner = _Planner(pipeline, errors)
    with registry.using(planner.local):
        return planner.plan()


def with_primary_keys(plan: Plan, keys: Mapping[str, tuple[str, ...]]) -> Plan:
    """Returns the plan of the same pipeline with primary keys that systems declare, by source.

    Raises UserError, or ValidationErrors with all errors, if the plan is invalid with these keys.
    """
    known = {**plan.pipeline.primary_keys, **keys}
    partial = make_plan(replace(plan.pipeline, primary_keys=known))
    raise_all(partial.errors)
    return partial.plan


class _Planner:
    def __init__(self, pipeline: Pipeline, errors: Iterable[PenstockError]) -> None:
        self.pipeline = pipeline
        self.spec = pipeline.spec
        self.source_map = pipeline.source_map
        self.errors = list(errors)
        self.invalid: set[str] = set()
        self.placeholder_sources: set[str] = set()
        self.location = locate_state(pipeline, self.errors)
        self.state = self.location.directory
        self.local = local_components(pipeline, self.errors)
        self.functions = resolve(
            pipeline, self.errors, file_functions(pipeline, self.errors),
            [*server_functions(pipeline, self.errors), *package_functions(pipeline, self.errors)],
        )  # fmt: skip
        self.components = Components(
            pipeline.name, self.source_map, self.state, self.errors, functions_of(self.functions)
        )

    def plan(self) -> PartialPlan:
        nodes = self._nodes()
        dead_letter = self._dead_letter()
        connected = resolve_inputs(nodes, self.pipeline, self.errors, self.invalid)
        nodes = self._valid_nodes(connected)
        nodes = translate_queries(nodes, self._report)
        plan = Plan(
            self.pipeline, nodes, (), self.state, self.location, dead_letter,
            tuple(self.pipeline.warnings), self.functions,
        )  # fmt: skip
        nodes, lost_keys = key_rows_of_sinks(
            nodes, plan.streams, spark_keeps_groups=not executors_store_nothing(plan)
        )
        self.errors += lost_keys
        plan = replace(plan, nodes=nodes)
        plan = self._without_invalid_queries(plan)
        for node in connected.values():
            if node.kind == "sink" and node.name not in plan.nodes:
                self.errors += rules.certain_sink_errors(node)
        nodes = inherit(plan.nodes, plan.streams)
        queries = make_queries(nodes, plan.streams, find_final_roots(nodes, plan.streams))
        observers = self._observers()
        self.errors += check_side_outputs(observers, nodes, queries, self.invalid, self.source_map)
        queries = observed_by(queries, observers)
        plan = replace(
            plan, nodes=configure_sinks(nodes, queries), queries=queries, observers=observers
        )
        placeholder_sources = frozenset(self.placeholder_sources & plan.nodes.keys())
        suspects = [plan.nodes[name].where for name in placeholder_sources]
        for rule in rules.ALL:
            is_certain = rule in rules.OF_DECLARED_COLUMNS
            self.errors.extend(
                error for error in rule(plan) if is_certain or error.where not in suspects
            )
        found = (
            *find_unbounded_state(plan), *assumed_columns(plan), *unencrypted_connections(plan),
            *conditional_sinks_of_results(plan),
        )  # fmt: skip
        plan = replace(plan, warnings=(*plan.warnings, *found))
        known = plan.nodes.keys() | self.invalid
        rest = [node for name, node in connected.items() if name not in known]
        below = tuple(node for node in rest if node.kind == "transform")
        return PartialPlan(plan, _without_duplicates(self.errors), placeholder_sources, below)

    def _report(self, node: Node, error: PenstockError) -> None:
        error.where = locate_error(self.source_map, error, node.route)
        self.errors.append(error)
        self.invalid.add(node.name)

    def _nodes(self) -> Nodes:
        nodes: dict[str, Node | None] = {
            name: self._node("source", name, source, ())
            for name, source in self.spec.sources.items()
        }
        for name, transform in self.spec.transforms.items():
            node = self._node("transform", name, transform, tuple(transform.inputs))
            nodes |= {part.name: part for part in self._parts(node)}
        keys = {node.name: node.key for node in list_nodes(self.source_map) if node.kind == "sink"}
        for name, sink in self.spec.sinks.items():
            nodes[keys[name]] = self._node("sink", keys[name], sink, tuple(sink.inputs))
        return {name: node for name, node in nodes.items() if node is not None}

    def _node(
        self, kind: Kind, name: str, spec: SourceSpec | TransformSpec | SinkSpec,
        inputs: tuple[str, ...],
    ) -> Node | None:  # fmt: skip
        """Creates a node, which is `invalid` after an error; None without a component."""
        route, count = (f"{kind}s", written_name(name)), len(self.errors)
        key = self.pipeline.primary_keys.get(name) if isinstance(spec, SourceSpec) else None
        if key is not None and not spec.primary_key:
            spec = spec.model_copy(update={"primary_key": list(key)})
        component = self.components.make(route, kind, name, spec)
        if component is None:
            return None
        if route in self.pipeline.damaged:
            self.invalid.add(name)
        elif len(self.errors) > count or any(invalid_values(self.source_map, route)):
            has_columns = isinstance(component, Source) and _has_declared_columns(component, spec)
            (self.placeholder_sources if has_columns else self.invalid).add(name)
        unknown_key = (
            isinstance(component, Source)
            and component.declares_primary_key
            and not spec.primary_key
            and key is None
        )
        where = self.source_map.key(route)
        return Node(name, kind, component, spec, inputs, where, unknown_key=unknown_key)

    def _parts(self, node: Node | None) -> list[Node]:
        """Returns a transform, with the nodes of its outputs, or the nodes of a dynamic table."""
        if node is None:
            return []
        if isinstance(node.component, Route) and node.name not in self.invalid:
            return [node, *_outputs(node, node.component)]
        if not isinstance(node.component, DynamicTable):
            return [node]
        if node.name in self.invalid:
            return []
        names = [each.key for each in list_nodes(self.source_map)]
        parts = DynamicTables(self.components, names).nodes(node)
        if not parts:
            self.invalid.add(node.name)
        return parts

    def _observers(self) -> tuple[Observer, ...]:
        """Returns the valid side outputs."""
        found = []
        for name, spec in self.spec.side_outputs.items():
            component = self.components.make(("side_outputs", name), "side_output", name, spec)
            if isinstance(component, SideOutput):
                found.append(Observer(name, component, tuple(spec.inputs), spec.max_rows))
        return tuple(found)

    def _dead_letter(self) -> Node | None:
        spec, count = self.spec.dead_letter, len(self.errors)
        if spec is None:
            return None
        route = ("dead_letter",)
        component = self.components.make(route, "sink", "dead_letter", spec)
        is_invalid = len(self.errors) > count or any(invalid_values(self.source_map, route))
        if not isinstance(component, Sink) or is_invalid or route in self.pipeline.damaged:
            return None
        as_sink = SinkSpec.model_validate(
            {"type": spec.type, "from": "dead_letter", "format": spec.format, "on_error": "fail"}
        )
        where = self.source_map.key(route)
        return Node("dead_letter", "sink", component, as_sink, (), where)

    def _valid_nodes(self, nodes: Nodes) -> Nodes:
        """Returns the valid nodes whose inputs, and the tables that they check, are valid."""
        valid: Nodes = {}
        for name, node in nodes.items():
            needed = (*node.inputs, *node.checked_tables)
            if name not in self.invalid and all(each in valid for each in needed):
                valid[name] = node
        return valid

    def _without_invalid_queries(self, plan: Plan) -> Plan:
        """Returns the plan without nodes that no query can compute, and reports these nodes."""
        without_stream = list(rules.sinks_have_streams(plan))
        streams = plan.streams
        roots, different_batches = find_roots(plan.nodes, streams)
        self.errors += [*without_stream, *different_batches]
        places = [error.where for error in without_stream]
        nodes = {
            name: node
            for name, node in plan.nodes.items()
            if node.where not in places
            and (name not in streams or name in roots or node.kind == "sink")
            and all(input_ not in streams or input_ in roots for input_ in node.inputs)
        }
        return replace(plan, nodes=nodes)


def _without_duplicates(errors: Iterable[PenstockError]) -> tuple[PenstockError, ...]:
    """Returns the errors, of several with the same message and location the first."""
    unique: dict[object, PenstockError] = {}
    for error in errors:
        unique.setdefault((error.where, error.code, error.message), error)
    return tuple(unique.values())


def _outputs(node: Node, route: Route) -> Iterator[Node]:
    """Yields the nodes of the outputs of a router."""
    spec = TransformSpec.model_validate({"type": "route", "from": node.name})
    for output, transform in route.outputs().items():
        name = f"{node.name}.{output}"
        yield Node(name, "transform", transform, spec, (node.name,), node.where)


def _has_declared_columns(source: Source[Any], spec: SourceSpec | TransformSpec | SinkSpec) -> bool:
    """Returns whether the columns of a source with wrong options are known."""
    if not isinstance(spec, SourceSpec) or spec.columns is None or source.columns is None:
        return False
    return set(source.metadata_columns.values()) <= set(source.metadata_schema().names)
