"""The structure of types: arrays, rows and ranges of other types, without domains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Number = tuple[int, int]
"""A type and a modifier, such as a precision, in the catalog."""


@dataclass(frozen=True)
class Structure:
    """The structure of a type, whose `kind` is plain, array, row or range; of a domain, its base.

    `name` is its name in SQL. `parts` are the types of the items of an array, of the columns of a
    row, or of the bounds of a range. `zero` is the zero of `money` as the server writes it.
    """

    name: str
    kind: str = "plain"
    parts: tuple[Structure, ...] = ()
    zero: str | None = None


TEXT = Structure("text")


def structures(rows: Iterable[tuple[Any, ...]]) -> Mapping[Number, Structure]:
    """Returns the structures in the rows of `catalog.STRUCTURES`."""
    types: dict[Number, Sequence[Any]] = {}
    parts: dict[Number, list[Number]] = {}
    for owner, owner_modifier, type_, modifier, *about in rows:
        types[type_, modifier] = about
        parts.setdefault((owner, owner_modifier), []).append((type_, modifier))
    return {number: _structure(number, types, parts) for number in types}


def _structure(
    number: Number, types: Mapping[Number, Sequence[Any]], parts_of: Mapping[Number, list[Number]]
) -> Structure:
    name, kind, zero = types[number]
    parts = tuple(_structure(part, types, parts_of) for part in parts_of.get(number, ()))
    if kind == "domain":
        return parts[0]
    if kind == "plain" and parts:
        return Structure(f"{parts[0].name}[]", "array", parts)
    if name.endswith("[]"):
        return TEXT  # An array with another delimiter, such as box[].
    return Structure(name, kind, parts, zero)
