"""Warnings about credentials on connections without TLS."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.core.errors import PenstockError
from penstock.core.location import Location
from penstock.plan.model import Plan
from penstock.plan.options import components_of
from penstock.sdk import Component
from penstock.sdk.network.unencrypted import unencrypted_credentials
from penstock.spec.source_map import Route, locate_error


def unencrypted_connections(plan: Plan) -> Iterator[PenstockError]:
    """Yields the warnings of the nodes of a plan. Nodes with the same connection have one."""
    found = set[tuple[Location | None, str]]()
    parts: list[tuple[Route, Component[Any]]] = [
        (node.route, node.component) for node in plan.nodes.values()
    ]
    if plan.dead_letter is not None:
        parts.append((("dead_letter",), plan.dead_letter.component))
    for node_route, node_component in parts:
        for component, route in components_of(node_component, node_route):
            for warning in unencrypted_credentials(component.config):
                warning.where = locate_error(plan.pipeline.source_map, warning, route)
                if (warning.where, warning.message) not in found:
                    found.add((warning.where, warning.message))
                    yield warning
