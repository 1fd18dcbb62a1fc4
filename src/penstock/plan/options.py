"""Options of components that have a type: paths of data, and secrets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from penstock.core.paths import resolve
from penstock.plan.model import Plan
from penstock.plan.node import Node
from penstock.sdk import Sink, Source
from penstock.spec.source_map import Route

Option = tuple[Route, FieldInfo, Any]
"""The route of an option in the file, its field, and its value."""


def options(plan: Plan) -> Iterator[tuple[Node, Option]]:
    """Yields the options of all nodes and of their formats, also within other options."""
    nodes = [*plan.nodes.values(), *([plan.dead_letter] if plan.dead_letter else [])]
    for node in nodes:
        for option in options_of(node.component.config, node.route):
            yield node, option
        format_ = node.component.format if isinstance(node.component, Source | Sink) else None
        if format_ is not None:
            for option in options_of(format_.config, (*node.route, "format")):
                yield node, option


def options_of(config: BaseModel, route: Route) -> Iterator[Option]:
    """Yields the options of a model at a route, also within other options."""
    for name, field in type(config).model_fields.items():
        value, option = getattr(config, name, None), (*route, field.alias or name)
        for below in value if isinstance(value, list) else [value]:
            if isinstance(below, BaseModel):
                yield from options_of(below, option)
        yield option, field, value


def is_path(field: FieldInfo) -> bool:
    """Returns whether the values of a field are paths relative to the pipeline file."""
    return _resolves(field.metadata) or _has_path(field.annotation)


def _has_path(annotation: Any) -> bool:
    metadata = getattr(annotation, "__metadata__", ())
    return _resolves(metadata) or any(_has_path(each) for each in get_args(annotation))


def _resolves(metadata: Any) -> bool:
    return any(getattr(each, "func", None) is resolve for each in metadata)
