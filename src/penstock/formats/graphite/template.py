"""Templates of Graphite: the parts of a metric path as measurement, tags and field."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

MEASUREMENT, FIELD = "measurement", "field"
DEFAULT_FIELD = "value"


@dataclass(frozen=True)
class Metric:
    """The identity of a value: the measurement, tags in the order of their names, and a field."""

    measurement: str
    tags: tuple[tuple[str, str], ...]
    field: str


@dataclass(frozen=True)
class Template:
    """A template with its filter. The text is `[FILTER] TEMPLATE [TAG=VALUE,...]`.

    A part is `measurement`, `field` or the name of a tag; an empty part is skipped. A final
    `measurement*` or `field*` has all further parts of the path.
    """

    text: str
    parts: tuple[str, ...]
    is_greedy: bool
    filter: re.Pattern[str] | None
    tags: tuple[tuple[str, str], ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Returns the template of a text. Raises ValueError."""
        words = text.split()
        if not 1 <= len(words) <= 3:
            raise ValueError(f'the template "{text}" has {len(words)} words, expected 1 to 3')
        tags: tuple[tuple[str, str], ...] = ()
        if len(words) == 3 or (len(words) == 2 and "=" in words[1]):
            tags = tuple(_tag(pair, text) for pair in words.pop().split(","))
        parts = words.pop().split(".")
        is_greedy = parts[-1] in (f"{MEASUREMENT}*", f"{FIELD}*")
        if is_greedy:
            parts[-1] = parts[-1].removesuffix("*")
        return cls(text, tuple(parts), is_greedy, _filter(words[0]) if words else None, tags)

    @property
    def tag_names(self) -> frozenset[str]:
        """The names of all tags that a metric may have."""
        names = {part for part in self.parts if part not in ("", MEASUREMENT, FIELD)}
        return frozenset(names | {name for name, _ in self.tags})

    def match(self, path: str, separator: str) -> Metric | None:
        """Returns the metric of a path, or None if the path does not match.

        Repeated parts are joined by the separator. A tag of the path precedes one of the template.
        """
        if self.filter is not None and not self.filter.fullmatch(path):
            return None
        values = path.split(".")
        count = len(self.parts)
        if len(values) < count or (len(values) > count and not self.is_greedy):
            return None
        found: dict[str, list[str]] = {}
        for part, value in zip(self.parts, values, strict=False):
            found.setdefault(part, []).append(value)
        found[self.parts[-1]] += values[count:]
        found.pop("", None)
        texts = {name: separator.join(parts) for name, parts in found.items()}
        measurement = texts.pop(MEASUREMENT, "")
        field = texts.pop(FIELD, DEFAULT_FIELD)
        tags = {**dict(self.tags), **texts}
        return Metric(measurement, tuple(sorted(tags.items())), field)


def parse_templates(texts: Sequence[str]) -> list[Template]:
    """Returns the templates of texts. Raises ValueError."""
    return [Template.parse(text) for text in texts]


def _tag(pair: str, text: str) -> tuple[str, str]:
    name, *values = pair.split("=")
    if len(values) != 1 or not name:
        raise ValueError(f'expected NAME=VALUE in the template "{text}", found "{pair}"')
    return name, values[0]


def _filter(text: str) -> re.Pattern[str]:
    """Returns the pattern of a filter: `*` is one or more characters, also dots."""
    return re.compile(".+".join(map(re.escape, text.split("*"))), re.DOTALL)
