"""Input of the shell: its parts are commands and statements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.core.location import Location
from penstock.spec.tree.nodes import File
from penstock.sql.text.quoting import statement_end

NAME = "<sql>"
"""The name of the input in messages."""
_SPACE = re.compile(r"(?:\s|;|--[^\n]*|/\*.*?\*/)*", re.DOTALL)
_COMMAND = re.compile(
    r"([\\.?][^\n]*|(?:exit|quit|help)(?=[ \t]*;?[ \t]*(?:--[^\n]*)?(?:\n|\Z)))",
    re.IGNORECASE,
)
"""A command: a line after `\\` or a dot, or a word that stands alone."""


@dataclass(frozen=True)
class Part:
    """A command or a statement, without its semicolon: `file.text[start:end]`."""

    file: File
    start: int
    end: int
    is_command: bool = False

    @property
    def text(self) -> str:
        """The text of the part."""
        return self.file.text[self.start : self.end]

    @property
    def location(self) -> Location:
        """The location of the part: its first line."""
        return self.file.location(self.start, self.end)

    @property
    def alone(self) -> File:
        """The part as a file of its own."""
        return File(self.file.name, self.text, self.file.base)

    def locate(self, where: Location) -> Location:
        """Returns the location in the input of a location in the text of the part."""
        first = self.file.location(self.start)
        line = first.line + where.line - 1
        column = where.column + (first.column - 1 if where.line == 1 else 0)
        return replace(
            where, file=self.file.name, line=line, column=column, text=self.file.line(line)
        )


def read_parts(text: str, name: str = NAME) -> Iterator[Part]:
    """Yields the commands and statements of an input, in their order.

    The last statement needs no semicolon. A statement with an open quote or comment reaches to the
    end of the input.
    """
    file, position = File(name, text, Path.cwd()), 0
    while True:
        space = _SPACE.match(text, position)
        position = space.end() if space else position
        if position == len(text):
            return
        command = _COMMAND.match(text, position)
        end = command.end() if command else statement_end(text, position)
        yield Part(file, position, end, bool(command))
        position = end


def is_complete(text: str) -> bool:
    """Returns whether an input ends with a command, or with a semicolon after its statement."""
    *_, last = [None, *read_parts(text)]
    return last is not None and (last.is_command or last.end < len(text))
