"""Locations in the user's files, and excerpts of their lines."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, replace

from penstock.core.known_secrets import conceal_in_line
from penstock.core.secret import redact
from penstock.core.text import printable

_MAX_WIDTH = 160


@dataclass(frozen=True)
class Location:
    """A location in a file. `line` and `column` count from 1.

    `length` is the number of marked characters. `text` is the whole line.
    """

    file: str
    line: int
    column: int
    length: int = 1
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def excerpt(self, note: str | None = None) -> list[str]:
        """Returns the lines of an excerpt, with `note` after the mark."""
        lines = [f"  --> {self}"]
        if not self.text.strip():
            return [*lines, f"  hint: {note}"] if note else lines
        number = str(self.line)
        gutter = " " * len(number)
        visible = replace(self, text=conceal_in_line(redact(self.text)))._shorten()
        before, marked = (
            printable(visible.text[: visible.column - 1]),
            printable(visible.text[visible.column - 1 :][: visible.length]),
        )
        pad = "".join("\t" if c == "\t" else " " * _width(c) for c in before)
        mark = pad + "^" * max(1, sum(_width(c) for c in marked))
        lines += [f" {gutter} |", f" {number} | {printable(visible.text)}", f" {gutter} | {mark}"]
        if note:
            lines[-1] += f" {note}"
        return lines

    def _shorten(self) -> Location:
        """Returns the location in a part of its line, if the line is too long."""
        if len(self.text) <= _MAX_WIDTH:
            return self
        start = max(self.column - 1 - _MAX_WIDTH // 2, 0)
        head = "..." if start else ""
        tail = "..." if start + _MAX_WIDTH < len(self.text) else ""
        text = head + self.text[start : start + _MAX_WIDTH] + tail
        return replace(self, text=text, column=self.column - start + len(head))


def _width(character: str) -> int:
    """Returns the number of terminal columns of a character."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
