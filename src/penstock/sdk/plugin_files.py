"""Python files with components, beside a pipeline: `@plugin("name")` above a class."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from penstock.core.errors import PlanError
from penstock.core.exits import exception_text, exits_as_exceptions
from penstock.core.plugin_files import import_file
from penstock.core.plugins import failing_place
from penstock.sdk import registry
from penstock.sdk.component import Component
from penstock.sdk.registry import Kind

ComponentType = TypeVar("ComponentType", bound=type)


def plugin(type_: str) -> Callable[[ComponentType], ComponentType]:
    """Names the `type` of a component in a Python file that a pipeline lists in `plugins`."""

    def name(component: ComponentType) -> ComponentType:
        component.__penstock_type__ = type_  # type: ignore[attr-defined]
        return component

    return name


def read_plugin_file(path: Path, name: str) -> dict[tuple[Kind, str], type[Component[Any]]]:
    """Returns the components of a file, which is run. Messages use `name`. Raises PlanError."""
    try:
        with exits_as_exceptions(KeyboardInterrupt):
            module = import_file(path)
    except Exception as error:
        place = failing_place(error).replace(str(path.absolute()), name) or name
        message = f"the plugin file {name} cannot be imported: {exception_text(error)} ({place})"
        raise PlanError(message, code="broken-plugin", hint="Correct the file.") from error
    found: dict[tuple[Kind, str], type[Component[Any]]] = {}
    for type_, component in _components(module):
        kind = registry.kind_of(component)
        reason = registry.fault(kind, component) if kind else "expected a component of the SDK"
        if kind is not None and (kind, type_) in found:
            reason = f'the file has two of kind {kind} with the name "{type_}"'
        if kind is not None and type_ in registry.entries(kind):
            package = registry.package(kind, type_)
            reason = f'the name "{type_}" is that of a {kind} of the package {package}'
        if reason is not None or kind is None:
            raise PlanError(
                f"the class {component.__name__} of the plugin file {name} cannot be used: "
                f"{reason}",
                code="broken-plugin", hint="Correct the file.",
            )  # fmt: skip
        found[kind, type_] = component
    return found


def _components(module: ModuleType) -> Iterator[tuple[str, type]]:
    """Yields the classes of a module that have a type of their own, with the type."""
    for value in vars(module).values():
        if isinstance(value, type) and value.__module__ == module.__name__:
            type_ = value.__dict__.get("__penstock_type__")
            if type_ is not None:
                yield str(type_), value
