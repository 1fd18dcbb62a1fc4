"""Packages that a pipeline needs: Penstock with the extras of its components and of its state."""

from __future__ import annotations

from typing import Any

from penstock.core.version import __version__
from penstock.plan.model import Plan
from penstock.sdk import Component, Sink, Source
from penstock.sdk.object_client import EXTRA
from penstock.sdk.object_store import is_cloud


def requirement(plan: Plan) -> str:
    """Returns the requirement of a pipeline for pip."""
    found = ",".join(extras(plan))
    return f"penstock[{found}]=={__version__}" if found else f"penstock=={__version__}"


def extras(plan: Plan) -> list[str]:
    """Returns the extras of the components of a plan, and of its state, in order."""
    nodes = [*plan.nodes.values(), *([plan.dead_letter] if plan.dead_letter else [])]
    found = {node.component.extra for node in nodes}
    for node in nodes:
        if isinstance(node.component, Source | Sink) and node.component.format is not None:
            found.add(node.component.format.extra)
        auth = getattr(node.component.config, "auth", None)
        if getattr(auth, "identity", None) == "aws":
            found.add("aws")
        found |= {EXTRA for url in _urls(node.component) if is_cloud(url)}
    if plan.location.url is not None:
        found.add("object_state")
    return sorted(extra for extra in found if extra)


def _urls(component: Component[Any]) -> list[str]:
    """Returns the paths and URLs of the options of a component."""
    config = component.config
    paths = getattr(config, "paths", None) or [getattr(config, "path", None)]
    warehouse = getattr(getattr(config, "catalog", None), "warehouse", None)
    return [each for each in (*paths, warehouse) if isinstance(each, str)]
