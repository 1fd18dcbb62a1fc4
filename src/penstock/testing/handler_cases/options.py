"""The options of a handler in a case: a text `NAME=VALUE;NAME=VALUE`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from penstock.core.text import did_you_mean, nearest
from penstock.testing.handler_cases.place import Place

T = TypeVar("T")


class WrongValue(Exception):
    """The value of an option is not the expected one. The text states what was expected."""


@dataclass(frozen=True)
class Option:
    """An option with its reader, its default, and its other names. `...` makes it required."""

    read: Callable[[str], Any]
    default: Any = ...
    aliases: tuple[str, ...] = ()


Options = Mapping[str, Option]


def parse_options(text: str, known: Options, place: Place) -> dict[str, Any]:
    """Returns the values of options by name. Raises SpecError."""
    names = {alias: name for name, option in known.items() for alias in (name, *option.aliases)}
    values: dict[str, Any] = {}
    for part in filter(str.strip, text.split(";")):
        key, sign, value = part.partition("=")
        name = names.get(key.strip())
        if not sign:
            raise place.error(f'expected NAME=VALUE, found "{part}"', code="invalid-option")
        if name is None:
            hint = did_you_mean(key.strip(), names)
            raise place.error(f'unknown option "{key.strip()}"', code="unknown-option", hint=hint)
        if name in values:
            raise place.error(f'the option "{key.strip()}" is given twice', code="duplicate-key")
        try:
            values[name] = known[name].read(value)
        except WrongValue as error:
            message = f'option "{key.strip()}": {error}'
            raise place.error(message, code="invalid-option") from None
    for name, option in known.items():
        if name not in values and option.default is ...:
            raise place.error(f'the option "{name}" is missing', code="missing-option")
        values.setdefault(name, option.default)
    return values


def text(value: str) -> str:
    """Returns a text that is not empty. Raises WrongValue."""
    if not value:
        raise WrongValue("expected a text, found nothing")
    return value


def names(value: str) -> list[str]:
    """Returns names between commas. Raises WrongValue."""
    found = [name.strip() for name in value.split(",")] if value.strip() else []
    if "" in found:
        raise WrongValue(f'expected names between commas, found "{value}"')
    return found


def integer(value: str) -> int:
    """Returns an integer of 64 bits. Raises WrongValue."""
    try:
        number = int(value)
    except ValueError:
        raise WrongValue(f'expected an integer, found "{value}"') from None
    if not -(2**63) <= number < 2**63:
        raise WrongValue(f"expected an integer of 64 bits, found {value}")
    return number


def number(value: str) -> float:
    """Returns a finite number. Raises WrongValue."""
    try:
        found = float(value)
    except ValueError:
        raise WrongValue(f'expected a number, found "{value}"') from None
    if not math.isfinite(found):
        raise WrongValue(f"expected a finite number, found {value}")
    return found


def flag(value: str) -> bool:
    """Returns a truth value. Raises WrongValue."""
    found = {"1": True, "true": True, "0": False, "false": False}.get(value.strip().lower())
    if found is None:
        raise WrongValue(f'expected 0, 1, false or true, found "{value}"')
    return found


def choice(*allowed: T) -> Callable[[str], T]:
    """Returns the reader of one of several words."""

    def read(value: str) -> T:
        found = next((each for each in allowed if each == value), None)
        if found is None:
            words = [str(each) for each in allowed]
            close = nearest(value, words)
            hint = f'; did you mean "{close}"?' if close else ""
            raise WrongValue(f'expected one of {", ".join(words)}, found "{value}"{hint}')
        return found

    return read


def parts(
    least: int, most: int, form: str, separator: str = ","
) -> Callable[[str], list[list[str]]]:
    """Returns the reader of items between separators, whose parts are between colons."""

    def read(value: str) -> list[list[str]]:
        items = [item.split(":") for item in value.split(separator)] if value else []
        for item in items:
            if not least <= len(item) <= most or "" in item:
                raise WrongValue(f'expected {form}, found "{":".join(item)}"')
        return items

    return read
