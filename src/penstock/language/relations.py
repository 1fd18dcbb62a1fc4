"""The nodes of a pipeline, with their columns as far as the text or its plan shows them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from penstock.language.sql_scope import output_columns
from penstock.plan.explain import Column

Kind = Literal["source", "transform", "sink"]
_PART = re.compile(r"[(<]|[)>]|,|[^()<>,]+")
_COLUMN = re.compile(r"\s*(?:`(?P<quoted>[^`]+)`|(?P<name>[^\s:]+))\s*:?\s*(?P<type>.*)", re.DOTALL)
_CONSTRAINT = re.compile(
    r"\s+(?:NOT\s+NULL|NULL|PRIMARY\s+KEY|COMMENT|METADATA|GENERATED)\b.*",
    re.IGNORECASE | re.DOTALL,
)
_NO_COLUMN = re.compile(r"\s*(?:PRIMARY\s+KEY|WATERMARK\s+FOR)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Relation:
    """A node of a file. `text[start:end]` of the file is its name.

    `columns` are declared, `query` is the SQL whose rows it has, and `inputs` are the nodes that it
    reads. `keeps_columns` is whether it has the columns of its only input.
    """

    name: str
    kind: Kind
    type: str
    start: int
    end: int
    columns: tuple[Column, ...] | None = None
    query: str | None = None
    inputs: tuple[str, ...] = ()
    keeps_columns: bool = False


class Relations:
    """The nodes of a pipeline. `planned` are the columns that its plan knows, by name."""

    def __init__(
        self, nodes: Iterable[Relation], planned: Mapping[str, tuple[Column, ...]] | None = None
    ) -> None:
        self.nodes = [*nodes]
        self._planned = {name.lower(): columns for name, columns in (planned or {}).items()}
        self._pending: set[str] = set()

    def find(self, name: str) -> Relation | None:
        """Returns the source or transform of a name, or else the sink; None without any."""
        found = [each for each in self.nodes if each.name.lower() == name.lower()]
        return next((each for each in found if each.kind != "sink"), next(iter(found), None))

    def readable(self) -> list[Relation]:
        """Returns the sources and transforms."""
        return [each for each in self.nodes if each.kind != "sink"]

    def columns(self, name: str) -> tuple[Column, ...] | None:
        """Returns the columns of a node; None if they are not known."""
        key = name.lower()
        if key in self._planned:
            return self._planned[key]
        node = self.find(name)
        if node is None or key in self._pending:
            return None
        self._pending.add(key)
        try:
            return self._of(node)
        finally:
            self._pending.discard(key)

    def _of(self, node: Relation) -> tuple[Column, ...] | None:
        if node.columns is not None:
            return node.columns
        if node.query is not None:
            return output_columns(node.query, self.columns)
        if node.keeps_columns or node.kind == "sink":
            return self.columns(node.inputs[0]) if len(node.inputs) == 1 else None
        return None


def declared_columns(text: str) -> tuple[Column, ...]:
    """Returns the columns of a declaration `a INT, b ARRAY<STRING>`, as far as it is complete."""
    parts, depth = [""], 0
    for match in _PART.finditer(text):
        piece = match[0]
        depth += (piece in "(<") - (piece in ")>")
        if piece == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += piece
    found = (_COLUMN.match(part) for part in parts if part.strip() and not _NO_COLUMN.match(part))
    return tuple(
        Column(each["quoted"] or each["name"], " ".join(_CONSTRAINT.sub("", each["type"]).split()))
        for each in found
        if each
    )
