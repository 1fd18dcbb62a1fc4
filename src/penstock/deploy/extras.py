"""Packages that a pipeline needs: Penstock with the extras of its components and of its state."""

from __future__ import annotations

from typing import Any

from penstock.core.version import __version__
from penstock.plan.model import Plan
from penstock.plan.options import components, options_of
from penstock.sdk import Component
from penstock.sdk.object_client import EXTRA
from penstock.sdk.object_store import is_cloud

_PATHS = frozenset({"path", "paths", "warehouse"})
"""The options with URLs of object stores."""


def requirement(plan: Plan) -> str:
    """Returns the requirement of a pipeline for pip."""
    found = ",".join(extras(plan))
    return f"penstock[{found}]=={__version__}" if found else f"penstock=={__version__}"


def extras(plan: Plan) -> list[str]:
    """Returns the extras of the components of a plan, and of its state, in order."""
    found: set[str] = set()
    for _, component, _ in components(plan):
        found |= extras_of_component(component)
    if plan.location.url is not None:
        found.add("object_state")
    return sorted(found)


def extras_of_component(component: Component[Any]) -> set[str]:
    """Returns the extras of a component, and of identities and URLs within its options."""
    found = {*component.required_extras()}
    for route, _, value in options_of(component.config, ()):
        if route[-1] == "identity" and value == "aws":
            found.add("aws")
        urls = value if isinstance(value, list) else [value]
        if route[-1] in _PATHS and any(isinstance(url, str) and is_cloud(url) for url in urls):
            found.add(EXTRA)
    return found
