"""Proposals of options: names, enumerated values, types of components."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from penstock.language.model import Completion
from penstock.language.options import KnownOption, describe_type
from penstock.sdk.registry import Kind, types


def option_text(known: KnownOption) -> str:
    """Returns the documentation of an option with its type and default, as Markdown."""
    option = known.option
    facts = [f"`{option.name}`: {option.type}"]
    facts += ["required"] if option.required else []
    facts += [f"default `{option.default}`"] if option.default not in (None, "", [], {}) else []
    facts += ["secret"] if option.secret else []
    return f"{', '.join(facts)}\n\n{option.text}".strip()


def option_detail(known: KnownOption) -> str:
    """Returns the type of an option in a few words."""
    return f"{known.option.type}{', required' if known.option.required else ''}"


def value_completions(known: KnownOption) -> Iterator[Completion]:
    """Yields the enumerated values of an option."""
    for value in known.values:
        default = "default" if str(known.option.default).lower() == value else ""
        yield Completion(value, "value", value, default, known.option.text)


def type_completions(kind: Kind) -> Iterator[Completion]:
    """Yields the types of a kind, with their documentation."""
    for type_ in types(kind):
        yield Completion(type_, "type", type_, *_summary(kind, type_))


@cache
def _summary(kind: Kind, type_: str) -> tuple[str, str]:
    found = describe_type(kind, type_)
    if found is None:
        return f"{kind}, not installed", ""
    return f"{kind}", type_text(kind, type_)


@cache
def type_text(kind: Kind, type_: str) -> str:
    """Returns the documentation of a type, as Markdown; empty for an unknown type."""
    found = describe_type(kind, type_)
    if found is None:
        return ""
    parts = [found.summary, found.text]
    parts += [f"```yaml\n{found.example.rstrip()}\n```"] if found.example else []
    return "\n\n".join(part for part in parts if part)


@cache
def type_options(kind: Kind, type_: str) -> tuple[str, ...]:
    """Returns the names of the required options of a type, without those of all nodes."""
    found = describe_type(kind, type_)
    return tuple(option.name for option in found.options if option.required) if found else ()
