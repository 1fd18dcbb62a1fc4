"""The tree of a YAML file: values and keys with their locations."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from penstock.core.location import Location
from penstock.core.paths import ConfigStr
from penstock.spec.preprocessing import OriginalLines, original_lines
from penstock.spec.source_map import SourceValue, Substitution
from penstock.spec.tree.align import align

_BREAK = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, eq=False)
class File:
    """The text of a file, its name as in the command line, and its directory."""

    name: str
    text: str = field(repr=False)
    base: Path

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(match.end() for match in _BREAK.finditer(self.text))]

    def line(self, number: int) -> str:
        """Returns the text of a line, counted from 1, without its line end."""
        if not 1 <= number <= len(self._starts):
            return ""
        start = self._starts[number - 1]
        end = self._starts[number] if number < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

    def location(self, start: int, end: int | None = None) -> Location:
        """Returns the location of `text[start:end]`, as far as the text is on its first line."""
        number = bisect_right(self._starts, start)
        line, column = self.line(number), start - self._starts[number - 1]
        marked = line[column : column + max((end or 0) - start, 0)].rstrip()
        if self._originals is not None:
            number, original, is_same = self._originals.original(number)
            if not is_same:
                return Location(self.name, number, 1, 1, original)
        return Location(self.name, number, column + 1, max(len(marked), 1), line)

    def index(self, where: Location) -> int:
        """Returns the index in the text of a location in this file."""
        line = where.line if self._originals is None else self._originals.processed(where.line)
        return self._starts[line - 1] + where.column - 1

    @cached_property
    def _originals(self) -> OriginalLines | None:
        return original_lines(self.name, self.text)


@dataclass(frozen=True, eq=False)
class Span:
    """The part of a file with a scalar."""

    file: File
    start: int
    end: int
    block: bool = False
    indexes: tuple[int, ...] | None = None
    """The index in the file of each character of the value and of its end, if they are known."""

    @property
    def body(self) -> int:
        """The index of the text: below the line of a block scalar's `|`."""
        if not self.block:
            return self.start
        match = _BREAK.search(self.file.text, self.start)
        return match.end() if match else self.end


@dataclass(frozen=True)
class Interpolated:
    """A part of a value that replaced an expression.

    `value[start:end]` was `written[from_start:from_end]`.
    """

    start: int
    end: int
    from_start: int
    from_end: int


@dataclass(frozen=True, eq=False)
class ScalarNode:
    """A scalar. `written` is its text as in the file, `text` is the text after interpolation."""

    value: str | int | float | bool | None = field(repr=False)
    written: str
    text: str = field(repr=False)
    location: Location = field(repr=False)
    base: Path = field(repr=False)
    plain: bool = True
    span: Span | None = field(default=None, repr=False)
    interpolated_parts: tuple[Interpolated, ...] = field(default=(), repr=False)
    secret: bool = False
    invalid: bool = field(default=False, repr=False)
    """Whether an expression in the scalar has no value, which was reported."""
    similar: tuple[str, ...] = ()
    """The names that the key of the scalar may be a misspelling of, in other spellings."""

    def data(self) -> Any:
        """Returns the value; text is a `ConfigStr` with the directory of the file."""
        if isinstance(self.value, str):
            return ConfigStr(self.value, self.base, self.secret)
        return self.value

    def derived(self, text: str, origins: Sequence[int]) -> ScalarNode:
        """Returns a text made of this one, with the index in `written` of each of its characters.

        `origins` has one more index, of the end of the text.
        """
        span, location = self.span, self.location
        if span is not None:
            indexes = tuple(self._indexes[origin] for origin in origins)
            span = Span(span.file, indexes[0], indexes[-1], indexes=indexes)
            location = span.file.location(indexes[0], indexes[-1])
        return replace(self, value=text, written=text, text=text, span=span, location=location)

    def locate(self, line: int, column: int, length: int = 1) -> Location:
        """Returns the location of a line and column, both from 1, of the value's text."""
        if self.span is None or not isinstance(self.value, str):
            return self.location
        lines = self.value.split("\n")
        line = min(max(line, 1), len(lines))
        offset = sum(len(text) + 1 for text in lines[: line - 1])
        offset += min(max(column, 1) - 1, len(lines[line - 1]))
        start, replaced = self._index_in_written(offset)
        if replaced:
            return self.locate_span(replaced.from_start, replaced.from_end)
        return self.locate_span(start, start + length)

    def locate_span(self, start: int, end: int) -> Location:
        """Returns the location of `written[start:end]`."""
        if self.span is None:
            return self.location
        indexes, file = self._indexes, self.span.file
        first = indexes[min(start, len(indexes) - 1)]
        last = indexes[min(max(end - 1, start), len(indexes) - 1)]
        return file.location(first, max(last, first) + 1)

    def _index_in_written(self, offset: int) -> tuple[int, Interpolated | None]:
        shift = 0
        for part in self.interpolated_parts:
            if offset < part.start:
                break
            if offset < part.end:
                return part.from_start, part
            shift = part.from_end - part.end
        return offset + shift, None

    @cached_property
    def _indexes(self) -> list[int]:
        span = self.span
        assert span is not None
        if span.indexes is not None:
            return list(span.indexes)
        return align(self.written, span.file.text, span.body, span.end)


@dataclass(frozen=True, eq=False)
class Entry:
    """A key and its value. Keys are text."""

    key: ScalarNode
    value: Node

    @property
    def name(self) -> str:
        """The text of the key."""
        return self.key.written


@dataclass(frozen=True, eq=False)
class MappingNode:
    """A map, in the order of the file, without duplicate keys."""

    entries: tuple[Entry, ...]
    location: Location = field(repr=False)
    base: Path = field(repr=False)
    flow: bool = field(default=False, repr=False)
    """Whether the map is in flow style, between braces."""

    @cached_property
    def _index(self) -> dict[str, Entry]:
        return {entry.name: entry for entry in self.entries}

    def entry(self, name: str) -> Entry | None:
        """Returns the entry of a name, or None."""
        return self._index.get(name)

    def get(self, name: str) -> Node | None:
        """Returns the value of a name, or None."""
        entry = self._index.get(name)
        return entry.value if entry else None

    def names(self) -> list[str]:
        """Returns the keys."""
        return list(self._index)

    def data(self) -> dict[str, Any]:
        """Returns plain data."""
        return {entry.name: entry.value.data() for entry in self.entries}


@dataclass(frozen=True, eq=False)
class SequenceNode:
    """A list."""

    items: tuple[Node, ...]
    location: Location = field(repr=False)
    base: Path = field(repr=False)
    flow: bool = field(default=False, repr=False)
    """Whether the list is in flow style, between brackets."""

    def data(self) -> list[Any]:
        """Returns plain data."""
        return [item.data() for item in self.items]


Node = ScalarNode | MappingNode | SequenceNode


def child(node: Node, step: str | int) -> Node | None:
    """Returns the value below `node` by key or index, or None."""
    if isinstance(node, MappingNode) and isinstance(step, str):
        return node.get(step)
    if isinstance(node, SequenceNode) and isinstance(step, int) and 0 <= step < len(node.items):
        return node.items[step]
    return None


def scalars(node: Node) -> Iterator[ScalarNode]:
    """Yields all scalars of a tree, without keys."""
    if isinstance(node, ScalarNode):
        yield node
    elif isinstance(node, MappingNode):
        for entry in node.entries:
            yield from scalars(entry.value)
    else:
        for item in node.items:
            yield from scalars(item)


def map_scalars(node: Node, function: Callable[[ScalarNode], ScalarNode]) -> Node:
    """Returns a tree with the results of a function in place of its scalars. Keys stay."""
    if isinstance(node, MappingNode):
        entries = (Entry(each.key, map_scalars(each.value, function)) for each in node.entries)
        return replace(node, entries=tuple(entries))
    if isinstance(node, SequenceNode):
        return replace(node, items=tuple(map_scalars(each, function) for each in node.items))
    return function(node)


def to_source_value(node: Node) -> SourceValue:
    """Returns the value of a node in the form of a source map."""
    substitutions = tuple(part for scalar in scalars(node) for part in _substitutions(scalar))
    if not isinstance(node, ScalarNode):
        return SourceValue(node.data(), inline=node.flow, substitutions=substitutions)
    return SourceValue(
        node.data(),
        node.written,
        node.text,
        quoted=not node.plain,
        invalid=node.invalid,
        substitutions=substitutions,
        similar=node.similar,
    )


def _substitutions(scalar: ScalarNode) -> Iterator[Substitution]:
    if scalar.interpolated_parts:
        yield Substitution(scalar.text, scalar.written, scalar.secret)
    for part in scalar.interpolated_parts:
        expression = scalar.written[part.from_start : part.from_end]
        yield Substitution(scalar.text[part.start : part.end], expression, scalar.secret)
