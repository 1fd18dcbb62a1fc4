"""The options of a component of another tool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

LEAST = {"natural": 0, "positive": 1}
"""The kinds of options that are integers with a minimum."""


@dataclass(frozen=True)
class Option:
    """An option. `unneeded` is the reason why an accepted option has no effect in Penstock.

    `unsupported` is the reason why Penstock does not support it, and `reading` is its meaning in
    Penstock.
    """

    name: str
    kind: str = "text"
    required: bool = False
    reading: str = ""
    choices: tuple[str, ...] = ()
    unneeded: str = ""
    unsupported: str = ""


@dataclass(frozen=True)
class Options:
    """The options of a map of its file. In a `closed` one an unknown option is an error."""

    options: Sequence[Option]
    closed: bool = False

    @property
    def names(self) -> list[str]:
        return [option.name for option in self.options]

    def find(self, name: str) -> Option | None:
        """Returns the option of a name, or None."""
        return next((option for option in self.options if option.name == name), None)


def options(*items: Option | str) -> Options:
    """Returns options. A text is `name`, `!` if required, `:kind`, and `= its reading`."""
    return Options([item if isinstance(item, Option) else _parse(item) for item in items])


def closed_options(*items: Option | str) -> Options:
    """Returns options of a map in which an unknown option is an error."""
    return replace(options(*items), closed=True)


def _parse(text: str) -> Option:
    declared, _, reading = text.partition(" = ")
    name, _, kind = declared.partition(":")
    return Option(name.rstrip("!"), kind or "text", name.endswith("!"), reading)


def unneeded(name: str, reason: str, required: bool = False) -> Option:
    """Returns an option without effect in Penstock."""
    return Option(name, "any", required, unneeded=reason)


def unsupported(name: str, reason: str) -> Option:
    """Returns an option that Penstock does not support."""
    return Option(name, "any", unsupported=reason)
