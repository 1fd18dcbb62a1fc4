"""Differences between two lists of columns, by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_COLUMN = re.compile(r"(?P<name>\S.*?): (?P<type>.*)", re.DOTALL)


@dataclass(frozen=True)
class ColumnChanges:
    """The columns that are added, the columns that are lost or have another type, and the order."""

    added: tuple[str, ...]
    lost: tuple[str, ...]
    reordered: bool

    @classmethod
    def of(cls, before: str, after: str) -> ColumnChanges:
        """Returns the differences of two texts of `fingerprint.columns_text`."""
        old, new = _columns(before), _columns(after)
        kept = [name for name in old if name in new]
        return cls(
            tuple(name for name in new if name not in old),
            tuple(name for name, type_ in old.items() if new.get(name) != type_),
            kept != [name for name in new if name in old],
        )

    def __str__(self) -> str:
        parts = [f'"{name}" is missing or has another type' for name in self.lost]
        parts += [f'"{name}" is new' for name in self.added]
        parts += ["another order"] if self.reordered else []
        return ", ".join(parts) or "the same names and types"


def _columns(text: str) -> Mapping[str, str]:
    """Returns the type of each column, with its nested types."""
    columns: dict[str, str] = {}
    for line in re.split(r"\n(?=\S)", text):
        found = _COLUMN.fullmatch(line)
        if found is not None:
            columns[found["name"]] = found["type"].removesuffix(" not null")
    return columns
