"""A place in a user's file, and how it is shown."""

from __future__ import annotations

from dataclasses import dataclass


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
        room = max(len(self.text) - self.column + 1, 1)
        pad = "".join("\t" if c == "\t" else " " for c in self.text[: self.column - 1])
        mark = pad + "^" * max(1, min(self.length, room))
        lines += [f" {gutter} |", f" {number} | {self.text}", f" {gutter} | {mark}"]
        if note:
            lines[-1] += f" {note}"
        return lines
