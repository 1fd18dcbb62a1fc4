"""Component registry: lookup of components by type, lazily through entry points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import Distribution, EntryPoint, entry_points
from typing import Any, Literal

from penstock.core.errors import MissingExtra, PlanError
from penstock.core.text import did_you_mean
from penstock.sdk.component import Component

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

Kind = Literal["source", "transform", "sink", "format"]
KINDS: tuple[Kind, ...] = ("source", "transform", "sink", "format")
GROUP = "penstock.{}s"


@cache
def entries(kind: Kind) -> dict[str, EntryPoint]:
    """Returns the entry points of a kind by type. Imports nothing."""
    return {entry.name: entry for entry in entry_points(group=GROUP.format(kind))}


def types(kind: Kind) -> list[str]:
    """Returns the types of a kind, sorted. Imports nothing."""
    return sorted(entries(kind))


def distribution(kind: Kind, type_: str) -> Distribution | None:
    """Returns the Python package of a type, or None for an unknown type."""
    entry = entries(kind).get(type_)
    return entry.dist if entry else None


def find(kind: Kind, type_: str, similar: Sequence[str] = ()) -> type[Component[Any]]:
    """Returns the class of a type.

    `similar` has names of other spellings that `type_` may be a misspelling of. Raises PlanError
    for an unknown type, with the nearest name, and for a plugin that cannot be imported, and
    MissingExtra.
    """
    entry = entries(kind).get(type_)
    if entry is None:
        others = [other for other in KINDS if other != kind and type_ in entries(other)]
        known = [*types(kind), *similar]
        other_name = _OTHER_NAMES.get(kind, {}).get(type_, type_)
        hint = f'Use "{type_}" as a {others[0]}.' if others else did_you_mean(other_name, known)
        hint = _TUNING.get((kind, type_), hint)
        raise PlanError(f'there is no {kind} of type "{type_}"', code="unknown-type", hint=hint)
    try:
        component: type[Component[Any]] = entry.load()
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in ("", "penstock"):
            raise
        raise MissingExtra.of(type_, str(error.name)) from error
    except Exception as error:
        package = entry.dist.name if entry.dist else "penstock"
        if package == "penstock":
            raise
        raise PlanError(
            f'the {kind} "{type_}" of the package {package} cannot be imported: '
            f"{type(error).__name__}: {error}",
            code="broken-plugin",
            hint="Upgrade or remove the package.",
        ) from error
    return component


def importable(kind: Kind) -> Iterator[tuple[str, type[Component[Any]]]]:
    """Yields the types of a kind with their classes, sorted. Leaves out plugins that are broken."""
    for type_ in types(kind):
        with suppress(PlanError, MissingExtra):
            yield type_, find(kind, type_)


def schemas() -> dict[str, dict[str, dict[str, Any]]]:
    """Returns the JSON Schema of the options of every type, by kind."""
    return {
        kind: {type_: find(kind, type_).config_type.model_json_schema() for type_ in types(kind)}
        for kind in KINDS
    }
