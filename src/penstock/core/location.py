"""A place in a user's file, and how it is shown."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, replace

from penstock.core.secret import hidden

_WIDEST = 160


@dataclass(frozen=True)
class Location:
    """`line` and `column` count from 1; `length` is the number of characters marked.

    `text` is the whole line as it stands in the file.
    """

    file: str
    line: int
    column: int
    length: int = 1
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def excerpt(self, note: str | None = None) -> list[str]:
        """The lines that show the place, with `note` beside the mark."""
        lines = [f"  --> {self}"]
        if not self.text.strip():
            return [*lines, f"  hint: {note}"] if note else lines
        number = str(self.line)
        gutter = " " * len(number)
        seen = replace(self, text=hidden(self.text))._cut()
        before, marked = seen.text[: seen.column - 1], seen.text[seen.column - 1 :][: seen.length]
        pad = "".join("\t" if c == "\t" else " " * _width(c) for c in before)
        mark = pad + "^" * max(1, sum(_width(c) for c in marked))
        lines += [f" {gutter} |", f" {number} | {seen.text}", f" {gutter} | {mark}"]
        if note:
            lines[-1] += f" {note}"
        return lines

    def _cut(self) -> Location:
        """The place in a part of its line, where the line is too long to be shown."""
        if len(self.text) <= _WIDEST:
            return self
        start = max(self.column - 1 - _WIDEST // 2, 0)
        head = "..." if start else ""
        tail = "..." if start + _WIDEST < len(self.text) else ""
        text = head + self.text[start : start + _WIDEST] + tail
        return replace(self, text=text, column=self.column - start + len(head))


def _width(character: str) -> int:
    """How many columns of a terminal a character takes."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
