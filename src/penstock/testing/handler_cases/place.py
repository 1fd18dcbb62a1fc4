"""Places in a JSON document, for errors."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from penstock.core.errors import SpecError
from penstock.core.location import Location
from penstock.core.text import line_and_column

Step = str | int
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True)
class Place:
    """A value in a JSON document, by the keys and indexes that lead to it."""

    file: str
    text: str
    steps: tuple[Step, ...] = ()

    def at(self, *steps: Step) -> Place:
        """Returns the place of a value within this one."""
        return Place(self.file, self.text, (*self.steps, *steps))

    def error(
        self, message: str, *, code: str, hint: str | None = None, of_key: bool = False
    ) -> SpecError:
        """Returns an error of the value, or of its key."""
        return SpecError(message, code=code, hint=hint, where=self._location(of_key))

    def _location(self, of_key: bool) -> Location:
        key, start = _find(self.text, self.steps)
        if of_key:
            start = key
        end = _DECODER.raw_decode(self.text, start)[1]
        return location(self.file, self.text, start, end)


def location(file: str, text: str, start: int, end: int) -> Location:
    """Returns the location of `text[start:end]`, as far as it is on one line."""
    line, column = line_and_column(text, start)
    whole_line = text.split("\n")[line - 1].rstrip("\r")
    length = max(min(end - start, len(whole_line) - column + 1), 1)
    return Location(file, line, column, length, whole_line)


def _find(text: str, steps: tuple[Step, ...]) -> tuple[int, int]:
    """Returns the indexes in a valid document of the key and of the value at `steps`."""
    key = start = _skip(text, 0)
    for step in steps:
        key, start = _child(text, start, step)
    return key, start


def _child(text: str, start: int, step: Step) -> tuple[int, int]:
    index, number = _skip(text, start + 1), 0
    while True:
        key = index
        name: Step = number
        if text[start] == "{":
            name, end = _DECODER.raw_decode(text, index)
            index = _skip(text, _skip(text, end) + 1)
        if name == step:
            return key, index
        _, end = _DECODER.raw_decode(text, index)
        index, number = _skip(text, _skip(text, end) + 1), number + 1


def _skip(text: str, index: int) -> int:
    match = _SPACE.match(text, index)
    assert match is not None
    return match.end()
