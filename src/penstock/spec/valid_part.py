"""The valid part of a pipeline with errors: its data without the values that are wrong."""

from __future__ import annotations

import copy
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from penstock.core.names import node_name_problem
from penstock.spec.graph import list_nodes
from penstock.spec.source_map import Route, SourceMap

M = TypeVar("M", bound=BaseModel)
_ROUNDS = 20
"""The maximum number of removals; each may reveal a missing key one level above."""


def validate_part(model: type[M], data: Any) -> tuple[M | None, frozenset[Route]]:
    """Returns the model of `data` without its wrong values, and the routes of these values.

    A map that lacks a required key is removed as a whole; a sink without `from` keeps its other
    keys. The model is None if nothing valid remains.
    """
    part, removed = copy.deepcopy(data), set[Route]()
    for _ in range(_ROUNDS):
        try:
            return model.model_validate(part), frozenset(removed)
        except ValidationError as error:
            routes = {_wrong_route(part, detail) for detail in error.errors(include_url=False)}
        if () in routes:
            break
        for route in routes:
            _remove(part, route)
        removed |= routes
    return None, frozenset(removed)


def damaged_nodes(source_map: SourceMap, removed: Iterable[Route]) -> frozenset[Route]:
    """Returns the routes of nodes and top-level values of which a part is wrong.

    These are the nodes with removed values, and those whose names or inputs are not unique.
    """
    nodes = list_nodes(source_map)
    spellings = defaultdict[str, set[str]](set)
    for node in nodes:
        spellings[node.name.casefold()].add(node.name)
    count = Counter(node.key for node in nodes)
    unusable = {
        node.route
        for node in nodes
        if count[node.key] > 1
        or len(spellings[node.name.casefold()]) > 1
        or node_name_problem(node.name)
        or len(set(node.input_names)) < len(node.inputs)
    }
    sections = {node.route[0] for node in nodes}
    return frozenset(unusable) | {route[: 2 if route[0] in sections else 1] for route in removed}


def invalid_values(source_map: SourceMap, route: Route) -> Iterator[Route]:
    """Yields the routes of values at and below `route` whose errors were reported already."""
    value = source_map.find(route)
    if value is None:
        return
    if value.invalid:
        yield route
    steps: Iterable[str | int] = ()
    if value.is_map:
        steps = value.data
    elif value.is_list:
        steps = range(len(value.data))
    for step in steps:
        yield from invalid_values(source_map, (*route, step))


def _wrong_route(data: Any, detail: Any) -> Route:
    """Returns the route of the value to remove: the innermost one in a map that has the error."""
    route: list[str | int] = []
    for step in detail["loc"]:
        if isinstance(data, dict) and step in data:
            route.append(step)
            data = data[step]
        elif not isinstance(data, dict):
            break
    if detail["type"] == "missing" and detail["loc"][-1] == "from" and route[:1] == ["sinks"]:
        return (*route, "from")
    return tuple(route)


def _remove(data: Any, route: Route) -> None:
    *above, last = route
    for step in above:
        data = data.get(step)
        if not isinstance(data, dict):
            return
    if last == "from" and len(above) == 2 and above[0] == "sinks":
        data[last] = []
    else:
        data.pop(last, None)
