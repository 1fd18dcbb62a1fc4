"""Options of components that have a type: paths of data, and secrets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from penstock.core.paths import resolve
from penstock.plan.model import Plan
from penstock.plan.node import Node
from penstock.sdk import Component, Sink, Source
from penstock.sdk.phases import PhasedSource
from penstock.spec.source_map import Route

Option = tuple[Route, FieldInfo, Any]
"""The route of an option in the file, its field, and its value."""


def options(plan: Plan) -> Iterator[tuple[Node, Option]]:
    """Yields the options of the components of all nodes, also within other options."""
    for node, component, route in components(plan):
        for option in options_of(component.config, route):
            yield node, option


def components(plan: Plan) -> Iterator[tuple[Node, Component[Any], Route]]:
    """Yields the components of all nodes: their formats and phases, too, each with its route."""
    nodes = [*plan.nodes.values(), *([plan.dead_letter] if plan.dead_letter else [])]
    for node in nodes:
        for component, route in components_of(node.component, node.route):
            yield node, component, route


def components_of(
    component: Component[Any], route: Route
) -> Iterator[tuple[Component[Any], Route]]:
    """Yields a component, its format and its phases, each with its route."""
    yield component, route
    if isinstance(component, Source | Sink) and component.format is not None:
        yield component.format, (*route, "format")
    if isinstance(component, PhasedSource):
        for number, phase in enumerate(component.phases):
            yield from components_of(phase, (*route, "phases", number))
        if component.starts is not None:
            yield from components_of(component.starts, (*route, "start_offsets"))


def options_of(config: BaseModel, route: Route) -> Iterator[Option]:
    """Yields the options of a model at a route, also within other options, lists and maps."""
    for name, field in type(config).model_fields.items():
        value, option = getattr(config, name, None), (*route, field.alias or name)
        for place, below in _parts(value, option):
            if isinstance(below, BaseModel):
                yield from options_of(below, place)
            elif isinstance(below, SecretStr) and place != option:
                yield place, field, below
        yield option, field, value


def _parts(value: Any, route: Route) -> Iterator[tuple[Route, Any]]:
    """Yields the values within lists and maps, each with its route."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _parts(part, (*route, key))
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            yield from _parts(part, (*route, index))
    else:
        yield route, value


def is_path(field: FieldInfo) -> bool:
    """Returns whether the values of a field are paths relative to the pipeline file."""
    return _resolves(field.metadata) or _has_path(field.annotation)


def _has_path(annotation: Any) -> bool:
    metadata = getattr(annotation, "__metadata__", ())
    return _resolves(metadata) or any(_has_path(each) for each in get_args(annotation))


def _resolves(metadata: Any) -> bool:
    return any(getattr(each, "func", None) is resolve for each in metadata)
