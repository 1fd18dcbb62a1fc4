"""Engines of tables, as `system.tables` describes them.

Source: https://clickhouse.com/docs/engines/table-engines/mergetree-family
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.connectors.clickhouse.declared import enclosed, split, unquote

_ONE_ROW = ("ReplacingMergeTree", "CollapsingMergeTree", "SummingMergeTree", "AggregatingMergeTree",
            "CoalescingMergeTree")  # fmt: skip
_NAME = re.compile(r"[A-Za-z_]\w*|`(?:[^`\\]|\\.)+`")


@dataclass(frozen=True)
class Engine:
    """The engine of a table: its name, its definition and the text of ORDER BY."""

    name: str
    definition: str
    sorting_key: str

    @property
    def keeps_one_row(self) -> bool:
        """Whether the engine keeps one row of each sorting key."""
        return self.name.endswith(_ONE_ROW)

    @property
    def sorting_columns(self) -> tuple[str, ...]:
        """The columns of ORDER BY; empty if it has expressions."""
        return _names(self.sorting_key)

    @property
    def replaces_by(self) -> tuple[str, str] | None:
        """The columns of the version and of deleted rows of a ReplacingMergeTree with both."""
        if not self.name.endswith("ReplacingMergeTree"):
            return None
        arguments = enclosed(self.definition.removeprefix(self.name))
        own = [text for text in split(arguments) if not text.startswith("'")]
        names = _names(", ".join(own))
        return (names[0], names[1]) if len(names) == 2 else None


def _names(text: str) -> tuple[str, ...]:
    """Returns the columns of a list; no columns if it has expressions."""
    names = list(split(enclosed(text) or text))
    if not all(map(_NAME.fullmatch, names)):
        return ()
    return tuple(unquote(name) if name.startswith("`") else name for name in names)
