"""Relations as a query reads them: event time, windows, and the query of a view."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

Spec = tuple[str, float, float]
"""A window: its function, width and slide in seconds; of a session, its gap.

A window of the calendar has `CALENDAR`, its unit and its zone in place of a function.
"""
CALENDAR = "calendar "

Bound = tuple[str, Spec]
"""The start or the end of a window: the name of the field, and the window."""


@dataclass(frozen=True)
class Output:
    """The columns of a relation that matter to windows."""

    time: str | None = None
    """The column of the event time."""
    windows: Mapping[str, Spec | None] = field(default_factory=dict)
    """The columns of windows by name in lower case; None if the window is not known."""
    unnamed: frozenset[str] = frozenset()
    """The columns of windows that have their name only in Penstock: calls without an alias."""
    bounds: Mapping[str, Bound] = field(default_factory=dict)
    """The columns in lower case that are the start or the end of a window of fixed width."""
    names: tuple[str | None, ...] | None = None
    """All columns in lower case, in order, with None for a column without a known name. None if the
    columns are not known."""

    def without(self, columns: Collection[str]) -> Output:
        """Returns the output without columns, whose names are in lower case."""
        if not columns:
            return self
        return Output(
            None if (self.time or "").lower() in columns else self.time,
            {name: spec for name, spec in self.windows.items() if name not in columns},
            self.unnamed.difference(columns),
            {name: bound for name, bound in self.bounds.items() if name not in columns},
            None if self.names is None else tuple(n for n in self.names if n not in columns),
        )

    def rename(self, columns: Sequence[str]) -> Output:
        """Returns the output with other names of its columns, by position."""
        if self.names is None or len(self.names) != len(columns):
            return Output()
        known = {
            old: new
            for old, new in zip(self.names, columns, strict=True)
            if old is not None and self.names.count(old) == 1
        }
        windows = {
            known[name].lower(): spec for name, spec in self.windows.items() if name in known
        }
        bounds = {
            known[name].lower(): bound for name, bound in self.bounds.items() if name in known
        }
        names = tuple(name.lower() for name in columns)
        return Output(known.get((self.time or "").lower()), windows, bounds=bounds, names=names)


NOTHING = Output()
"""No event time and no windows."""


@dataclass(frozen=True)
class InputRelation:
    """A node as a query reads it."""

    name: str
    output: Output = NOTHING
    text: str | None = None
    """The query of a view, which can be read in place of the view."""
    relations: Mapping[str, InputRelation] = field(default_factory=dict)
    """The relations of `text` by name in lower case."""
    has_watermark: bool = False
    """Whether the rows come from a stream with a watermark."""
    ends: bool = False
    """Whether the input of the pipeline ends."""
    is_stream: bool = True
    """Whether the node is a stream, not a static table."""

    def streams(self) -> Iterator[InputRelation]:
        """Yields the streams with a watermark that the query of a view reads, directly or not."""
        for relation in self.relations.values():
            if relation.has_watermark:
                yield relation
                yield from relation.streams()
