"""The structure of types: arrays, rows and ranges of other types, without domains."""

from __future__ import annotations

import json
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
    found = {(int(row[0]), int(row[1])): row[2:] for row in rows}
    return {number: _structure(number, found) for number in found}


def _structure(number: Number, rows: Mapping[Number, Sequence[Any]]) -> Structure:
    name, kind, numbers, zero = rows[number]
    parts = tuple(_structure((type_, modifier), rows) for type_, modifier in json.loads(numbers))
    if kind == "domain":
        return parts[0]
    if kind == "plain" and name.endswith("[]"):
        return TEXT  # An array with another delimiter, such as box[].
    if kind == "array":
        name = f"{parts[0].name}[]"
    return Structure(name, kind, parts, zero)
