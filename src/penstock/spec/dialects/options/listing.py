"""The rows of the table of a dialect: its components and options, with their readings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from penstock.spec.dialects.options.declarations import Option, Options


class Row(NamedTuple):
    """A row: a component, an option, and its reading. A component itself has no option."""

    component: str
    option: str
    reading: str


def list_options(
    kinds: Mapping[str, Mapping[str, Options]], becomes: Callable[[str, str], str]
) -> Iterator[Row]:
    """Yields the rows of components by kind and type.

    `becomes` returns the part of a pipeline that a component becomes.
    """
    for kind, components in kinds.items():
        for type_, options in components.items():
            name = f"{kind} `{type_}`"
            yield Row(name, "", becomes(kind, type_))
            for option in options.options:
                if option.name != "type":
                    yield Row(name, f"`{option.name}`", _reading(option))


def list_missing(reasons: Mapping[str, str]) -> Iterator[Row]:
    """Yields the rows of missing components, with their reasons."""
    for name, reason in reasons.items():
        yield Row(f"`{name}`", "", f"missing: {reason}")


def _reading(option: Option) -> str:
    if option.unsupported:
        return f"missing: {option.unsupported}"
    if option.unneeded:
        return f"accepted without effect: {option.unneeded}"
    return option.reading or "the same"
