"""The text of a file as an editor has it, saved or not."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from penstock.language.model import Edit, Position, Range

_BREAK = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True)
class Document:
    """A text and the path of its file, which need not exist."""

    path: Path
    text: str

    @cached_property
    def starts(self) -> list[int]:
        """The index of the first character of each line."""
        return [0, *(match.end() for match in _BREAK.finditer(self.text))]

    def line(self, number: int) -> str:
        """Returns the text of a line, counted from 0, without its end."""
        end = self.starts[number + 1] if number + 1 < len(self.starts) else len(self.text)
        return self.text[self.starts[number] : end].rstrip("\r\n")

    def index(self, position: Position) -> int:
        """Returns the index of a position. A position beyond a line is the end of the line."""
        number = min(max(position.line, 1), len(self.starts)) - 1
        column = min(max(position.column - 1, 0), len(self.line(number)))
        return self.starts[number] + column

    def position(self, index: int) -> Position:
        """Returns the position of an index."""
        index = min(max(index, 0), len(self.text))
        number = bisect_right(self.starts, index) - 1
        return Position(number + 1, index - self.starts[number] + 1)

    def range(self, start: int, end: int) -> Range:
        """Returns the range of `text[start:end]`."""
        return Range(self.position(start), self.position(end))

    def slice(self, part: Range) -> str:
        """Returns the text of a range."""
        return self.text[self.index(part.start) : self.index(part.end)]

    def edited(self, edits: tuple[Edit, ...]) -> str:
        """Returns the text after edits, which do not overlap."""
        text = self.text
        for edit in sorted(edits, key=lambda each: each.range.start, reverse=True):
            start, end = self.index(edit.range.start), self.index(edit.range.end)
            text = text[:start] + edit.text + text[end:]
        return text
