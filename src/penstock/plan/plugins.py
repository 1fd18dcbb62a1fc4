"""Plugins of a pipeline: the Python files that it names, and the warnings of broken packages."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from penstock.core.errors import PenstockError, PlanError, SpecError
from penstock.core.files.regular_files import check_regular_file
from penstock.core.plugins import BrokenPlugin, broken, entry_points, failing_place, package_of
from penstock.core.python_permission import SERVER_FUNCTIONS, python_not_permitted, python_permitted
from penstock.plan.functions.decorated import DecoratedFile
from penstock.plan.functions.model import Function
from penstock.sdk import registry
from penstock.sdk.component import Component
from penstock.sdk.plugin_files import read_plugin_file
from penstock.sdk.registry import Kind
from penstock.spec.front_end import GROUP as FRONT_ENDS
from penstock.spec.front_end import broken_front_ends
from penstock.spec.preprocessing import broken_preprocessors, preprocessors
from penstock.spec.source_map import Route
from penstock.spec.validate import Pipeline

_DECORATOR = re.compile(r"@\s*(?:\w+\.)?(?:udf|udaf|udtf)\b")
GROUP = "penstock.functions"
"""The entry points of functions for SQL: the name of the function, and `module:function`."""


def local_components(
    pipeline: Pipeline, errors: list[PenstockError]
) -> dict[tuple[Kind, str], type[Component[Any]]]:
    """Returns the components in the files of `plugins`, by kind and type. Appends to `errors`."""
    found: dict[tuple[Kind, str], type[Component[Any]]] = {}
    for route, path, name in plugin_files(pipeline):
        where = pipeline.source_map.value(route)
        if not python_permitted():
            errors.append(python_not_permitted(f"the plugin file {name}", where))
            continue
        try:
            check_regular_file(path)
            components = read_plugin_file(path, name)
        except OSError as error:
            message = f"cannot read {name}: {error.strerror}"
            hint = "name a Python file, relative to the pipeline file"
            errors.append(SpecError(message, code="missing-file", where=where, hint=hint))
            continue
        except PlanError as error:
            error.where = where
            errors.append(error)
            continue
        for kind, type_ in components.keys() & found.keys():
            message = f'two plugin files have a {kind} "{type_}"'
            errors.append(PlanError(message, code="duplicate-name", where=where))
        found |= components
    return found


def plugin_files(pipeline: Pipeline) -> Iterator[tuple[Route, Path, str]]:
    """Yields the route, the path and the name of each file of `plugins`."""
    source_map = pipeline.source_map
    for index, path in enumerate(pipeline.spec.plugins):
        route: Route = ("plugins", index)
        if source_map.find(route) is None:
            route = route[:-1]
        value = source_map.find(route)
        yield route, Path(path), value.written if value and value.written else str(path)


def file_functions(pipeline: Pipeline, errors: list[PenstockError]) -> list[Function]:
    """Returns the functions in the files of `plugins`. Appends to `errors`."""
    found: list[Function] = []
    if not python_permitted():
        return found  # `local_components` has the errors
    for _, path, name in plugin_files(pipeline):
        text = path.read_text("utf-8", "replace") if path.is_file() else ""
        if _DECORATOR.search(text):
            file = DecoratedFile(path.absolute(), name, text)
            found += file.functions()
            errors += [error for error in file.errors if error.code != "no-functions"]
    return found


def package_functions(pipeline: Pipeline, errors: list[PenstockError]) -> list[Function]:
    """Returns the functions of packages whose names occur in a pipeline. Appends to `errors`.

    The files of the packages are read and not run.
    """
    entries = entry_points(group=GROUP)
    text = f"{pipeline.spec}".lower() if entries else ""
    found: list[Function] = []
    for entry in entries:
        if entry.name.lower() not in text or entry.name in pipeline.spec.functions:
            continue
        function = _read_function(entry)
        if isinstance(function, Function):
            found.append(function)
        else:
            errors.append(function.error())
    return found


def server_functions(pipeline: Pipeline, errors: list[PenstockError]) -> list[Function]:
    """Returns the functions of the server whose names occur in a pipeline. Appends to `errors`.

    The files of the server are read and not run.
    """
    directory = os.environ.get(SERVER_FUNCTIONS)
    files = sorted(Path(directory).glob("*.py")) if directory and python_permitted() else []
    text = f"{pipeline.spec}".lower() if files else ""
    found: list[Function] = []
    for path in files:
        file = DecoratedFile(path, f"functions of the server: {path.stem}", path.read_text("utf-8"))
        used = [each for each in file.functions() if each.name.lower() in text]
        found += used
        errors += file.errors if used else []
    return found


@dataclass(frozen=True)
class Plugin:
    """An installed plugin of a package."""

    kind: str
    name: str
    package: str
    version: str


def installed_plugins() -> list[Plugin]:
    """Returns all plugins of packages, broken or not. Imports nothing."""
    groups: list[tuple[str, Iterable[EntryPoint]]] = [
        *((kind.replace("_", " "), registry.plugins(kind)) for kind in registry.KINDS),
        ("function", entry_points(group=GROUP)),
        ("preprocessor", preprocessors().values()),
        ("front end", entry_points(group=FRONT_ENDS)),
    ]
    return [
        Plugin(kind, entry.name, package_of(entry), entry.dist.version if entry.dist else "")
        for kind, entries in groups
        for entry in entries
    ]


def broken_plugins() -> list[BrokenPlugin]:
    """Returns all plugins of packages that cannot be used. Imports all of them."""
    functions = [_read_function(entry) for entry in entry_points(group=GROUP)]
    return [
        *registry.broken_plugins(),
        *(each for each in functions if isinstance(each, BrokenPlugin)),
        *broken_preprocessors(),
        *broken_front_ends(),
    ]


def _read_function(entry: EntryPoint) -> Function | BrokenPlugin:
    module, _, attribute = entry.value.partition(":")
    try:
        spec = find_spec(module.strip())
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        return broken("function", entry, reason, failing_place(error)).plugin
    if spec is None or not spec.origin:
        return broken("function", entry, f"there is no module {module}").plugin
    try:
        text = Path(spec.origin).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return broken("function", entry, f"{error}", spec.origin).plugin
    file = DecoratedFile(Path(spec.origin), spec.origin, text)
    functions = file.functions()
    found = next((each for each in functions if each.entry == attribute.strip()), None)
    if found is not None and found.name == entry.name:
        return found
    errors = [error.message for error in file.errors]
    reason = (
        errors[0]
        if errors
        else f"the file has no function {entry.name} with a decorator of penstock"
    )
    return broken("function", entry, reason, spec.origin).plugin
