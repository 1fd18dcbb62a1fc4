"""The options that a map of a YAML text may have, from the models that also report errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from pydantic import BaseModel

from penstock.core.errors import PenstockError
from penstock.language.yaml_entry import Entry, Step
from penstock.sdk import registry
from penstock.sdk.describe import Description, Option, describe, options_of
from penstock.sdk.registry import Kind
from penstock.spec.fields import fields_at, models_at
from penstock.spec.models import PipelineSpec
from penstock.spec.node_models import (
    DeadLetterSpec,
    PhaseSpec,
    SideOutputSpec,
    SinkSpec,
    SourceSpec,
    TransformSpec,
)

_SHARED: dict[str, tuple[Kind, type[BaseModel]]] = {
    "sources": ("source", SourceSpec), "transforms": ("transform", TransformSpec),
    "sinks": ("sink", SinkSpec), "side_outputs": ("side_output", SideOutputSpec),
    "dead_letter": ("sink", DeadLetterSpec), "connections": ("source", SourceSpec),
}  # fmt: skip
_INNER_SOURCES = {"phases": 2, "start_offsets": 1}
"""The options of a source that hold sources, and the steps from the node to such a source."""


@dataclass(frozen=True)
class KnownOption:
    """An option with its documentation. `values` are enumerated; empty for other values."""

    option: Option
    values: tuple[str, ...]
    is_map: bool
    of_type: bool
    """Whether the option is one of the type of a node, and not of all nodes."""

    @property
    def name(self) -> str:
        return self.option.name


@dataclass(frozen=True)
class Holder:
    """The models of a map, and the type of the component whose options it has."""

    models: tuple[type[BaseModel], ...]
    trail: tuple[Step, ...]
    kind: Kind | None = None
    """The kind of the component that the key `type` names; None without one."""
    component: type[BaseModel] | None = None


def options_at(holder: Entry, root: Entry) -> dict[str, KnownOption]:
    """Returns the options of a map, required ones first; those of the type before those of all."""
    found = holder_of(holder, root)
    known: list[KnownOption] = []
    for model in found.models:
        fields = fields_at(model, found.trail)
        for inner in models_at(model, found.trail):
            for option in options_of(inner):
                field = fields[option.name]
                is_map = option.type.startswith("map") or " or map" in option.type
                known.append(
                    KnownOption(option, tuple(field.values), is_map, inner is found.component)
                )
    known.sort(key=lambda each: (each.name != "type", not each.option.required, not each.of_type))
    by_name: dict[str, KnownOption] = {}
    for each in known:
        by_name.setdefault(each.name, each)
    return by_name


def holder_of(entry: Entry, root: Entry) -> Holder:
    """Returns the models of the map at an entry."""
    route = entry.route
    if not route or route[0] not in _SHARED:
        return Holder((PipelineSpec,), _with_tags(entry, len(route)))
    depth = 1 if route[0] == "dead_letter" else 2
    if len(route) < depth:
        return Holder((), ())
    kind, shared = _SHARED[str(route[0])]
    node = _above(entry, len(route) - depth)
    if len(route) > depth and route[depth] == "format":
        return _format(entry, node, len(route) - depth)
    for option, steps in _INNER_SOURCES.items():
        if option in route[depth : depth + 1] and len(route) >= depth + steps:
            return _node(entry, root, "source", PhaseSpec, len(route) - depth - steps)
    return _node(entry, root, kind, shared, len(route) - depth)


def _node(entry: Entry, root: Entry, kind: Kind, shared: type[BaseModel], below: int) -> Holder:
    """Returns the models of a node, or of a map `below` levels within its options."""
    node = _above(entry, below)
    trail = _with_tags(entry, below)
    component = component_model(kind, node_type(node, root))
    models: tuple[type[BaseModel], ...] = (shared,)
    if component is not None:
        models = (component, shared)
    if trail:
        models = tuple(each for each in models if str(trail[0]) in fields_at(each, ()))
        return Holder(models, trail)
    return Holder(models, (), kind, component)


def _format(entry: Entry, node: Entry, below: int) -> Holder:
    """Returns the models of the map of a format."""
    format_ = node.child("format")
    type_ = format_.text_of("type") if format_ else None
    component = component_model("format", type_)
    trail = _with_tags(entry, below - 1)
    return Holder((component,) if component else (), trail, None if trail else "format", component)


def component_model(kind: Kind, type_: str | None) -> type[BaseModel] | None:
    """Returns the model of the options of a type; None for an unknown one."""
    try:
        return registry.find(kind, type_).config_type if type_ else None
    except PenstockError:
        return None


def node_type(node: Entry, root: Entry) -> str | None:
    """Returns the type of a node: its own, or that of its connection."""
    type_ = node.text_of("type")
    connections = root.child("connections")
    connection = connections.child(node.text_of("connection") or "") if connections else None
    return type_ or (connection.text_of("type") if connection else None)


def describe_type(kind: Kind, type_: str) -> Description | None:
    """Returns the description of a type; None for an unknown one."""
    try:
        return _describe(kind, type_)
    except PenstockError:
        return None


@cache
def _describe(kind: Kind, type_: str) -> Description:
    return describe(kind, type_)


def _above(entry: Entry, levels: int) -> Entry:
    for _ in range(levels):
        assert entry.parent is not None
        entry = entry.parent
    return entry


def _with_tags(entry: Entry, levels: int) -> tuple[Step, ...]:
    """Returns the last steps of the route of an entry, with the `type` of each map after its step.

    The type selects the branch of a union of models.
    """
    return tuple(_steps(entry, levels))


def _steps(entry: Entry, levels: int) -> Iterator[Step]:
    if levels == 0 or entry.parent is None:
        return
    yield from _steps(entry.parent, levels - 1)
    yield entry.step
    if type_ := entry.text_of("type"):
        yield type_
