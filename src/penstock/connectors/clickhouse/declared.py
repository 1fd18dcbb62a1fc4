"""Declared types of ClickHouse, as the server writes them.

Source: https://clickhouse.com/docs/sql-reference/data-types
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

_CALL = re.compile(r"(?s)(\w+)(?:\((.*)\))?")
_TRANSPARENT = {"LowCardinality": 0, "SimpleAggregateFunction": 1}
"""Types with the values of another type, which is the argument of this index."""
_NAMED = re.compile(r"(?s)(`(?:[^`\\]|\\.)+`|[A-Za-z_]\w*)\s+(.+)")
_PIECE = re.compile(r"'(?:[^'\\]|\\.|'')*'|`(?:[^`\\]|\\.)*`|[(),]|[^'`(),]+")
_ESCAPED = re.compile(r"\\(.)|''")


@dataclass(frozen=True)
class Declared:
    """A type: its name, its arguments, and whether it has nulls."""

    name: str
    arguments: Sequence[str] = ()
    nullable: bool = False

    @property
    def parts(self) -> Sequence[tuple[str, Declared]]:
        """The types within an Array, a Map, a Tuple or a Nested, with the names of fields."""
        match self.name:
            case "Array":
                return [("item", parse(self.arguments[0]))]
            case "Map":
                return [("key", parse(self.arguments[0])), ("value", parse(self.arguments[1]))]
            case "Tuple" | "Nested":
                return [_part(index, text) for index, text in enumerate(self.arguments)]
        return []

    @property
    def labels(self) -> Sequence[str]:
        """The values of an Enum."""
        return [unquote(text.rpartition("=")[0].strip()) for text in self.arguments]

    @property
    def number(self) -> int | None:
        """The first argument as a number; None without it."""
        first = self.arguments[0] if self.arguments else ""
        return int(first) if first.isdigit() else None


@cache
def parse(text: str) -> Declared:
    """Parses a type. Raises ValueError."""
    match = _CALL.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"unknown type {text}")
    name, inner = match.groups()
    arguments = tuple(split(inner or ""))
    if name == "Nullable":
        return replace(parse(arguments[0]), nullable=True)
    if name in _TRANSPARENT:
        return parse(arguments[_TRANSPARENT[name]])
    return Declared(name, arguments)


def unquote(text: str) -> str:
    """Returns the text of a quoted name or value."""
    return _ESCAPED.sub(lambda match: match[1] or "'", text[1:-1])


def _part(index: int, text: str) -> tuple[str, Declared]:
    if match := _NAMED.fullmatch(text):
        name = match[1]
        return (unquote(name) if name.startswith("`") else name), parse(match[2])
    return str(index + 1), parse(text)


def enclosed(text: str) -> str:
    """Returns the text in the parentheses at the start of a text; empty without them."""
    depth, found = 0, ""
    for piece in _PIECE.findall(text):
        depth += {"(": 1, ")": -1}.get(piece, 0)
        found += piece
        if not depth:
            break
    return found[1:-1] if found.startswith("(") else ""


def split(text: str) -> Iterator[str]:
    """Yields the arguments of a type."""
    depth, argument = 0, ""
    for piece in _PIECE.findall(text):
        if piece == "," and not depth:
            yield argument.strip()
            argument = ""
            continue
        depth += {"(": 1, ")": -1}.get(piece, 0)
        argument += piece
    if argument.strip():
        yield argument.strip()
