"""Source maps: from a value of a pipeline to its location in the file that defines it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from penstock.core.errors import OptionError, PenstockError
from penstock.core.location import Location

Route = tuple[str | int, ...]
"""Keys and indexes from the root of a pipeline to a value."""


@dataclass(frozen=True)
class Substitution:
    """Text from outside the file, such as an environment variable, and its expression."""

    value: str
    expression: str
    secret: bool = False


@dataclass(frozen=True)
class SourceValue:
    """A value of a pipeline, together with its form in the file."""

    data: Any
    """Plain data: a scalar, a dict or a list."""
    written: str = ""
    """The text of a scalar as in the file, without quotes and before substitution."""
    text: str = ""
    """The text of a scalar after substitution."""
    quoted: bool = False
    inline: bool = False
    """Whether a map or list begins at its own location, not at its first entry."""
    invalid: bool = False
    """Whether an error of the value was reported already."""
    substitutions: tuple[Substitution, ...] = ()
    """The substitutions in the value and in all values below."""
    similar: tuple[str, ...] = ()
    """The names that the key of the value may be a misspelling of, in other spellings."""

    @property
    def is_map(self) -> bool:
        """Whether the value is a map."""
        return isinstance(self.data, dict)

    @property
    def is_list(self) -> bool:
        """Whether the value is a list."""
        return isinstance(self.data, list)

    @property
    def is_scalar(self) -> bool:
        """Whether the value is text, a number, true, false or nothing."""
        return not self.is_map and not self.is_list

    @property
    def is_empty(self) -> bool:
        """Whether the value is missing in the file."""
        return self.data is None and not self.written


class SourceMap(Protocol):
    """Locations of the keys and values of one pipeline, which may consist of several files."""

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the files in order."""
        ...

    def find(self, route: Route) -> SourceValue | None:
        """Returns the value at `route`, or None if there is none."""
        ...

    def key(self, route: Route) -> Location:
        """Returns the location of the key at the end of `route`; of a list's item, the item's.

        Without such a value, the nearest location above.
        """
        ...

    def value(self, route: Route) -> Location:
        """Returns the location of the value at `route`, or of its key if the value is empty."""
        ...

    def inside(self, route: Route, line: int, column: int, length: int = 1) -> Location:
        """Returns the location of a line and column, both from 1, of the text at `route`."""
        ...

    def base(self, route: Route) -> Path:
        """Returns the base directory of relative paths at `route`."""
        ...


def locate_error(source_map: SourceMap, error: PenstockError, route: Route) -> Location:
    """Returns the location of an error raised by the component at `route`."""
    if error.where is not None:
        return error.where
    if not isinstance(error, OptionError):
        return source_map.value(route)
    option = (*route, *error.option)
    while len(option) > len(route) and source_map.find(option) is None:
        option = option[:-1]
    if error.of_key:
        return source_map.key(option)
    if error.line_and_column is None:
        return source_map.value(option)
    return source_map.inside(option, *error.line_and_column, error.length)


def whole_file(source_map: SourceMap) -> Location:
    """Returns the location of the first file as a whole."""
    return Location(source_map.files[0], 1, 1)


def find_map(source_map: SourceMap, route: Route) -> dict[str, Any]:
    """Returns the map at `route`; empty without a map."""
    value = source_map.find(route)
    return value.data if value is not None and value.is_map else {}


def find_texts(source_map: SourceMap, route: Route) -> Iterator[tuple[Route, SourceValue]]:
    """Yields the valid texts at `route`, a text or a list of texts, with their routes."""
    value = source_map.find(route)
    routes = [route]
    if value is not None and value.is_list:
        routes = [(*route, index) for index in range(len(value.data))]
    for text_route in routes:
        text = source_map.find(text_route)
        if text is not None and isinstance(text.data, str) and not text.invalid:
            yield text_route, text
