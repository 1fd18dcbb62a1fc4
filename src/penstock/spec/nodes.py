"""The tree of a pipeline file: every value and every key knows its place."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from penstock.core.location import Location
from penstock.core.paths import Text
from penstock.spec.align import align

_BREAK = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, eq=False)
class File:
    """The text of a file, its name as the user gave it, and its directory."""

    name: str
    text: str = field(repr=False)
    base: Path

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(match.end() for match in _BREAK.finditer(self.text))]

    def line(self, number: int) -> str:
        """The text of a line, counted from 1, without its end."""
        if not 1 <= number <= len(self._starts):
            return ""
        start = self._starts[number - 1]
        end = self._starts[number] if number < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

    def location(self, start: int, end: int | None = None) -> Location:
        """The place of `text[start:end]`, as far as it is on its first line."""
        number = bisect_right(self._starts, start)
        line, column = self.line(number), start - self._starts[number - 1]
        marked = line[column : column + max((end or 0) - start, 0)].rstrip()
        return Location(self.name, number, column + 1, max(len(marked), 1), line)


@dataclass(frozen=True, eq=False)
class Span:
    """Where a scalar stands in its file."""

    file: File
    start: int
    end: int
    block: bool = False

    @property
    def body(self) -> int:
        """Where the text begins: below the line of a block scalar's `|`."""
        if not self.block:
            return self.start
        match = _BREAK.search(self.file.text, self.start)
        return match.end() if match else self.end


@dataclass(frozen=True)
class Piece:
    """A part of a value that an expression was replaced by: `value[start:end]` was
    `written[from_start:from_end]`."""

    start: int
    end: int
    from_start: int
    from_end: int


@dataclass(frozen=True, eq=False)
class Scalar:
    """One value. `written` is its text as in the file, `text` with `${...}` replaced."""

    value: str | int | float | bool | None = field(repr=False)
    written: str
    text: str = field(repr=False)
    location: Location = field(repr=False)
    base: Path = field(repr=False)
    plain: bool = True
    span: Span | None = field(default=None, repr=False)
    pieces: tuple[Piece, ...] = field(default=(), repr=False)
    secret: bool = False
    broken: bool = field(default=False, repr=False)
    """An expression in it could not be replaced, which has been told."""

    @property
    def interpolated(self) -> bool:
        """Whether any part of the value came from the environment or a secret."""
        return bool(self.pieces)

    def data(self) -> Any:
        """The value, its text as `Text` that knows the directory."""
        if isinstance(self.value, str):
            return Text(self.value, self.base, self.secret)
        return self.value

    def place(self, line: int, column: int, length: int = 1) -> Location:
        """Where in the file a line and column (from 1) of the value's text stand."""
        if self.span is None or not isinstance(self.value, str):
            return self.location
        lines = self.value.split("\n")
        line = min(max(line, 1), len(lines))
        offset = sum(len(each) + 1 for each in lines[: line - 1])
        offset += min(max(column, 1) - 1, len(lines[line - 1]))
        start, replaced = self._origin(offset)
        if replaced:
            return self.part(replaced.from_start, replaced.from_end)
        return self.part(start, start + length)

    def part(self, start: int, end: int) -> Location:
        """Where in the file `written[start:end]` stands."""
        if self.span is None:
            return self.location
        places, file = self._places, self.span.file
        first = places[min(start, len(places) - 1)]
        last = places[min(max(end - 1, start), len(places) - 1)]
        return file.location(first, max(last, first) + 1)

    def _origin(self, offset: int) -> tuple[int, Piece | None]:
        shift = 0
        for piece in self.pieces:
            if offset < piece.start:
                break
            if offset < piece.end:
                return piece.from_start, piece
            shift = piece.from_end - piece.end
        return offset + shift, None

    @cached_property
    def _places(self) -> list[int]:
        span = self.span
        assert span is not None
        return align(self.written, span.file.text, span.body, span.end)


@dataclass(frozen=True, eq=False)
class Entry:
    """A key and its value; a key's value is always text."""

    key: Scalar
    value: Node

    @property
    def name(self) -> str:
        """The key's text."""
        return self.key.written


@dataclass(frozen=True, eq=False)
class Mapping:
    """Keys in the order of the file; each key is there once."""

    entries: tuple[Entry, ...]
    location: Location = field(repr=False)
    base: Path = field(repr=False)
    flow: bool = field(default=False, repr=False)
    """Whether it is written between braces."""

    @cached_property
    def _index(self) -> dict[str, Entry]:
        return {entry.name: entry for entry in self.entries}

    def entry(self, name: str) -> Entry | None:
        """The entry of that name."""
        return self._index.get(name)

    def get(self, name: str) -> Node | None:
        """The value of that name."""
        entry = self._index.get(name)
        return entry.value if entry else None

    def names(self) -> list[str]:
        """The keys."""
        return list(self._index)

    def data(self) -> dict[str, Any]:
        """Plain data."""
        return {entry.name: entry.value.data() for entry in self.entries}


@dataclass(frozen=True, eq=False)
class Sequence:
    """Values in order."""

    items: tuple[Node, ...]
    location: Location = field(repr=False)
    base: Path = field(repr=False)
    flow: bool = field(default=False, repr=False)
    """Whether it is written between brackets."""

    def data(self) -> list[Any]:
        """Plain data."""
        return [item.data() for item in self.items]


Node = Scalar | Mapping | Sequence
Route = tuple[str | int, ...]
"""Keys and indexes from the root to a value."""


def child(node: Node, step: str | int) -> Node | None:
    """The value below `node` by key or index, if there is one."""
    if isinstance(node, Mapping) and isinstance(step, str):
        return node.get(step)
    if isinstance(node, Sequence) and isinstance(step, int) and 0 <= step < len(node.items):
        return node.items[step]
    return None


def scalars(node: Node) -> Iterator[Scalar]:
    """All values of a tree, keys not included."""
    if isinstance(node, Scalar):
        yield node
    elif isinstance(node, Mapping):
        for entry in node.entries:
            yield from scalars(entry.value)
    else:
        for item in node.items:
            yield from scalars(item)
