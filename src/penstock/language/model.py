"""Answers of the language service. Positions count lines and characters from 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CompletionKind = Literal[
    "option", "value", "type", "node", "column", "function", "keyword", "snippet"
]
SymbolKind = Literal["section", "source", "transform", "sink", "function", "node", "setting"]


@dataclass(frozen=True, order=True)
class Position:
    """A place between two characters: `column` is that of the character after it."""

    line: int
    column: int


@dataclass(frozen=True)
class Range:
    """A part of a text, from `start` to the character before `end`."""

    start: Position
    end: Position


@dataclass(frozen=True)
class Edit:
    """A replacement of a part of a text."""

    range: Range
    text: str


@dataclass(frozen=True)
class Fix:
    """A correction of an error: edits of the file that has the error."""

    title: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True)
class Completion:
    """A proposal. `text` takes the place of the range of its `Completions`.

    The text of a `snippet` has fields such as `${1:name}` in the syntax of the Language Server
    Protocol. `detail` is a short text such as a type, `documentation` a longer one.
    """

    label: str
    kind: CompletionKind
    text: str
    detail: str = ""
    documentation: str = ""
    snippet: bool = False


@dataclass(frozen=True)
class Completions:
    """The proposals at a position, best first, and the range that they replace."""

    range: Range
    items: tuple[Completion, ...] = ()


@dataclass(frozen=True)
class Hover:
    """Documentation of the part of a text at a position, as Markdown."""

    text: str
    range: Range


@dataclass(frozen=True)
class Target:
    """The place of a definition, in a file."""

    file: str
    range: Range


@dataclass(frozen=True)
class Symbol:
    """A named part of a file. `range` is the whole part, `name_range` its name."""

    name: str
    kind: SymbolKind
    range: Range
    name_range: Range
    detail: str = ""
    children: tuple[Symbol, ...] = ()
