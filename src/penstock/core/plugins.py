"""Plugins: entry points of other packages, and the errors of those that cannot be used."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.metadata import Distribution, EntryPoint, EntryPoints
from typing import Any

from penstock.core.errors import PlanError
from penstock.core.exits import exception_text, exits_as_exceptions

OWN = "penstock"
"""The package whose entry points are no plugins."""


@dataclass(frozen=True)
class BrokenPlugin:
    """A plugin that cannot be used. `file` is the file with the fault, or the entry point."""

    kind: str
    name: str
    package: str
    file: str
    reason: str

    @property
    def message(self) -> str:
        """The plugin, its package, its file and its fault, in one line."""
        subject = f'the {self.kind} "{self.name}" of the package {self.package}'
        return f"{subject} cannot be used: {self.reason} ({self.file})"

    def error(self) -> PlanError:
        """Returns the error of the plugin."""
        hint = "Correct, upgrade or remove the package."
        return PlanError(self.message, code="broken-plugin", hint=hint)


class BrokenPluginError(Exception):
    """The fault of a plugin."""

    def __init__(self, plugin: BrokenPlugin) -> None:
        super().__init__(plugin.message)
        self.plugin = plugin


@cache
def entry_points(group: str) -> EntryPoints:
    """Returns the entry points of a group. Those of all packages are read once for each group."""
    return metadata.entry_points(group=group)


def package_of(entry: EntryPoint) -> str:
    """Returns the name of the package of an entry point."""
    return _name_of(entry.dist) if entry.dist is not None else OWN


@cache
def _name_of(package: Distribution) -> str:
    """Returns the name of a package. Its metadata are read once: that takes milliseconds."""
    return package.name


def load_plugin(kind: str, entry: EntryPoint, fault: Callable[[Any], str | None]) -> Any:
    """Returns the object of an entry point of another package. Raises BrokenPluginError.

    `fault` returns the reason why an object cannot be used, or None.
    """
    try:
        with exits_as_exceptions(KeyboardInterrupt):
            found = entry.load()
        reason = fault(found)
    except Exception as error:
        raise broken(kind, entry, exception_text(error), failing_place(error)) from error
    if reason is not None:
        raise broken(kind, entry, reason)
    return found


def broken(kind: str, entry: EntryPoint, reason: str, place: str = "") -> BrokenPluginError:
    """Returns the error of an entry point. `place` is that of its fault, as `file, line 3`."""
    return BrokenPluginError(
        BrokenPlugin(kind, entry.name, package_of(entry), place or _file(entry), reason)
    )


def failing_place(error: BaseException) -> str:
    """Returns the file and line where code raised an error; empty if no file did."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    place, trace = "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        inside = "importlib" in file or file in (__file__, exits_as_exceptions.__code__.co_filename)
        if not inside:
            place = f"{file}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _file(entry: EntryPoint) -> str:
    """Returns the file of the module of an entry point, if it is known, or the entry point."""
    module = sys.modules.get(entry.value.partition(":")[0].strip())
    return str(getattr(module, "__file__", None) or entry.value)
