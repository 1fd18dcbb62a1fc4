"""Component registry: lookup of components by type, lazily through entry points."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from importlib.metadata import Distribution, EntryPoint, entry_points
from typing import Any, Literal, get_args

from penstock.core.errors import MissingExtra, PlanError
from penstock.core.plugins import OWN, BrokenPlugin, BrokenPluginError, broken, load_plugin
from penstock.core.plugins import package_of as _package_of
from penstock.core.text import did_you_mean
from penstock.sdk.component import SDK_VERSION, Component

_OTHER_NAMES = {
    "transform": {
        "explode": "unnest", "posexplode": "unnest", "redact": "mask", "switch": "route",
        "router": "route", "assert": "expect", "validate": "expect", "fill_null": "default",
        "coalesce": "default", "json_to_arrow": "decode", "arrow_to_json": "encode",
        "handler": "http",
    },
}  # fmt: skip
"""Names of types in other systems, each with the name here."""
_TUNING = {
    ("transform", "batch"): "Set the size of batches where it matters: max_records of a source or "
    "of the transform http, or batch of a sink.",
}
"""Hints for types of other systems that only divide rows into batches."""

Kind = Literal["source", "transform", "sink", "format", "side_output"]
KINDS: tuple[Kind, ...] = get_args(Kind)
GROUP = "penstock.{}s"
Local = Mapping[tuple[Kind, str], type[Component[Any]]]
_NO_LOCAL: Local = {}
_LOCAL: ContextVar[Local] = ContextVar("_LOCAL", default=_NO_LOCAL)
"""The components of the files of a pipeline, by kind and type."""


@cache
def installed(kind: Kind) -> Mapping[str, Sequence[EntryPoint]]:
    """Returns all entry points of a kind by type: those of Penstock first. Imports nothing."""
    found: defaultdict[str, list[EntryPoint]] = defaultdict(list)
    for entry in entry_points(group=GROUP.format(kind)):
        found[entry.name].append(entry)
    for each in found.values():
        each.sort(key=lambda entry: _package_of(entry) != OWN)
    return found


@cache
def entries(kind: Kind) -> dict[str, EntryPoint]:
    """Returns the entry points of a kind by type. Imports nothing.

    Of several with the same name this is that of Penstock, if there is one.
    """
    return {type_: found[0] for type_, found in installed(kind).items()}


def types(kind: Kind) -> list[str]:
    """Returns the types of a kind, sorted. Imports nothing."""
    local = {type_ for local_kind, type_ in _LOCAL.get() if local_kind == kind}
    return sorted({*entries(kind), *local})


def distribution(kind: Kind, type_: str) -> Distribution | None:
    """Returns the Python package of a type, or None for an unknown type."""
    entry = entries(kind).get(type_)
    return entry.dist if entry else None


def package(kind: Kind, type_: str) -> str:
    """Returns the name of the Python package of a known type."""
    return _package_of(entries(kind)[type_])


@contextmanager
def using(local: Local) -> Iterator[None]:
    """Adds the components of the files of a pipeline."""
    token = _LOCAL.set(local)
    try:
        yield
    finally:
        _LOCAL.reset(token)


def find(kind: Kind, type_: str, similar: Sequence[str] = ()) -> type[Component[Any]]:
    """Returns the class of a type.

    `similar` has names of other spellings that `type_` may be a misspelling of. Raises PlanError
    for an unknown type, with the nearest name, and for a plugin that cannot be used, and
    MissingExtra.
    """
    local = _LOCAL.get().get((kind, type_))
    if local is not None:
        return local
    entry = entries(kind).get(type_)
    if entry is None:
        others = [other for other in KINDS if other != kind and type_ in entries(other)]
        known = [*types(kind), *similar]
        other_name = _OTHER_NAMES.get(kind, {}).get(type_, type_)
        hint = f'Use "{type_}" as a {others[0]}.' if others else did_you_mean(other_name, known)
        hint = _TUNING.get((kind, type_), hint)
        label = kind.replace("_", " ")
        raise PlanError(f'there is no {label} of type "{type_}"', code="unknown-type", hint=hint)
    if _package_of(entry) != OWN:
        try:
            return _load(kind, entry)
        except BrokenPluginError as error:
            raise error.plugin.error() from error
    try:
        component: type[Component[Any]] = entry.load()
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in ("", OWN):
            raise
        raise MissingExtra.of(type_, str(error.name)) from error
    return component


def _load(kind: Kind, entry: EntryPoint) -> type[Component[Any]]:
    """Returns the class of a plugin. Raises BrokenPluginError."""
    packages = sorted(_package_of(each) for each in installed(kind).get(entry.name, ()))
    if OWN in packages:
        raise broken(kind, entry, f'Penstock has a {kind} "{entry.name}"')
    if len(packages) > 1:
        raise broken(kind, entry, f"the name is used by several packages: {', '.join(packages)}")
    component: type[Component[Any]] = load_plugin(kind, entry, lambda found: fault(kind, found))
    return component


def fault(kind: Kind, component: object) -> str | None:
    """Returns the reason why an object cannot be a component of a kind, or None."""
    name = getattr(component, "__name__", repr(component))
    if not isinstance(component, type) or not issubclass(component, _bases(kind)):
        expected = " or ".join(base.__name__ for base in _bases(kind))
        return f"{name} is no subclass of {expected}"
    version = getattr(component, "sdk_version", SDK_VERSION)
    if version != SDK_VERSION:
        return f"{name} is written for version {version} of the SDK, expected {SDK_VERSION}"
    missing = (
        method
        for method in dir(component)
        if getattr(getattr(component, method, None), "__isabstractmethod__", False)
    )
    method = next(missing, None)
    return f"{name} has no method {method}" if method else None


def kind_of(component: type) -> Kind | None:
    """Returns the kind of a class, by its base classes, or None."""
    return next((kind for kind in KINDS if issubclass(component, _bases(kind))), None)


def _bases(kind: Kind) -> tuple[type, ...]:
    """Returns the base classes of a kind. They import this module."""
    from penstock.sdk.format import Format
    from penstock.sdk.side_output import SideOutput
    from penstock.sdk.sink import Sink
    from penstock.sdk.source import Source
    from penstock.sdk.transform import DataFrameTransform, Transform

    bases: dict[Kind, tuple[type, ...]] = {
        "source": (Source,), "transform": (Transform, DataFrameTransform), "sink": (Sink,),
        "format": (Format,), "side_output": (SideOutput,),
    }  # fmt: skip
    return bases[kind]


def plugins(kind: Kind) -> list[EntryPoint]:
    """Returns the entry points of other packages. Imports nothing."""
    return [
        entry for found in installed(kind).values() for entry in found if _package_of(entry) != OWN
    ]


def broken_plugins() -> Iterator[BrokenPlugin]:
    """Yields the components of other packages that cannot be used. Imports all of them."""
    for kind in KINDS:
        for entry in plugins(kind):
            try:
                _load(kind, entry)
            except BrokenPluginError as error:
                yield error.plugin


def importable(kind: Kind) -> Iterator[tuple[str, type[Component[Any]]]]:
    """Yields the types of a kind with their classes, sorted. Leaves out plugins that are broken."""
    for type_ in types(kind):
        with suppress(PlanError, MissingExtra):
            yield type_, find(kind, type_)


def schemas() -> dict[str, dict[str, dict[str, Any]]]:
    """Returns the JSON Schema of the options of every type that can be used, by kind."""
    return {
        kind: {type_: found.config_type.model_json_schema() for type_, found in importable(kind)}
        for kind in KINDS
    }
