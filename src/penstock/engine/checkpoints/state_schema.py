"""Schemas of stateful operators: the columns of a state, stored with the state.

A state has the values of rows by their position. A pipeline that is changed may have the same
columns in another order, or other columns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.core.errors import StateError

_IDS = re.compile(r"#\d+L?|(?<=_gen_alias_)\d+")
Columns = tuple[tuple[str, str], ...]
"""The names and types of columns, in their order."""


@dataclass(frozen=True)
class OperatorSchema:
    """The kind of a stateful operator, and the columns of the parts of its state.

    The parts are its key and the rows of its inputs, or the values it has for each group.
    """

    kind: str
    parts: tuple[Columns, ...]

    @classmethod
    def parse(cls, stored: Mapping[str, Any]) -> OperatorSchema:
        """Returns the schema of a dictionary of `as_dict`."""
        parts = (tuple((name, type_) for name, type_ in part) for part in stored["parts"])
        return cls(stored["kind"], tuple(parts))

    def as_dict(self) -> dict[str, Any]:
        """Returns the schema as a dictionary for JSON."""
        return {"kind": self.kind, "parts": [[list(c) for c in part] for part in self.parts]}

    def positions(self, current: OperatorSchema) -> list[list[int]] | None:
        """Returns the positions in `current` of the columns of each part, or None.

        None if the state does not fit: it has other columns, or the same ones in another order and
        two of one name.
        """
        if self.kind != current.kind or len(self.parts) != len(current.parts):
            return None
        found = [_positions(*parts) for parts in zip(self.parts, current.parts, strict=True)]
        known = [part for part in found if part is not None]
        return known if len(known) == len(found) else None

    def extended(self, current: OperatorSchema) -> OperatorSchema:
        """Returns the schema with the columns that rows have in `current` and here lack."""
        if len(self.parts) != len(current.parts):
            return self
        key, *rows = self.parts
        added = [
            tuple(column for column in new if column[0] not in dict(old))
            for old, new in zip(rows, current.parts[1:], strict=True)
        ]
        parts = (key, *((*old, *new) for old, new in zip(rows, added, strict=True)))
        return OperatorSchema(self.kind, parts)

    def differences(self, current: OperatorSchema) -> list[str]:
        """Returns the differences of columns, one a line."""
        if self.kind != current.kind:
            return [f"it has {self.kind}, and the pipeline computes {current.kind}"]
        lines = []
        for old, new in zip(self.parts, current.parts, strict=False):
            before, after = dict(old), dict(new)
            lines += [
                f'"{name}" was {type_} and is {after.get(name, "missing")}'
                for name, type_ in before.items()
                if after.get(name) != type_
            ]
            lines += [f'"{n}" {type_} is new' for n, type_ in after.items() if n not in before]
        return list(dict.fromkeys(lines)) or ["columns have another order"]


def _positions(stored: Columns, current: Columns) -> list[int] | None:
    if stored == current:
        return list(range(len(stored)))
    if len({name for name, _ in stored}) < len(stored) or sorted(stored) != sorted(current):
        return None
    return [current.index(column) for column in stored]


def different_state(subject: str, stored: OperatorSchema, current: OperatorSchema) -> StateError:
    """Returns the error of an operator whose columns do not fit its state."""
    return StateError(
        f"the state of {subject} has other columns than the pipeline",
        code="changed-plan",
        detail="\n".join(stored.differences(current)),
        hint="Undo the change, rename the changed node, or reset the state with --fresh.",
    )


def stable_name(name: str) -> str:
    """Returns a name or a text of Spark without the IDs of expressions, which change."""
    return _IDS.sub("", name)


def is_identity(positions: Sequence[int]) -> bool:
    """Returns whether columns are in the order of the state."""
    return list(positions) == list(range(len(positions)))
