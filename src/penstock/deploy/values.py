"""Values of the files of a pipeline, with the expressions in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.spec.source_map import Route, SourceMap

_INNER = re.compile(r"\$\{(secret:file/|file:)([^${}]+)\}")


@dataclass(frozen=True)
class Value:
    """A text of a pipeline. `base` is the directory to which it is relative as a path."""

    route: Route
    text: str
    base: Path
    expressions: tuple[str, ...]

    @property
    def option(self) -> str:
        """The name of the option, also for an item of a list."""
        return next((step for step in reversed(self.route) if isinstance(step, str)), "")

    @property
    def is_relative(self) -> bool:
        """Whether the text may be a path relative to its file."""
        return bool(self.text) and "://" not in self.text and self.text[0] not in "/~"

    @property
    def path(self) -> Path:
        return self.base / self.text

    def references(self, provider: str) -> Iterator[str]:
        """Yields the names in `${PROVIDER...}`: of `secret:file/` or of `file:`."""
        for expression in self.expressions:
            for found, name in _INNER.findall(expression):
                if found == provider:
                    yield name


def texts(source_map: SourceMap, route: Route = ()) -> Iterator[Value]:
    """Yields the texts of a pipeline at a route and below."""
    value = source_map.find(route)
    if value is None:
        return
    if value.is_map or value.is_list:
        steps = value.data if value.is_map else range(len(value.data))
        for step in steps:
            yield from texts(source_map, (*route, step))
    elif isinstance(value.data, str):
        expressions = tuple(each.expression for each in value.substitutions)
        base = source_map.base(route).absolute()
        yield Value(route, str.__str__(value.data), base, expressions)
