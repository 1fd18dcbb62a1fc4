"""Entries of the outline of a YAML text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

Step = str | int


@dataclass(eq=False)
class Entry:
    """A key with its value, an item of a list, or a word without a colon: `is_stub`.

    The indexes are those of the text. `value` is the text of a scalar without its quotes. The
    value of a block or of several lines is `text[start:end]`, with its indentation.
    """

    step: Step
    indent: int
    key_start: int
    key_end: int
    value_start: int
    value_end: int
    parent: Entry | None = field(repr=False)
    children: list[Entry] = field(default_factory=list, repr=False)
    value: str | None = None
    is_stub: bool = False
    is_block: bool = False
    is_flow: bool = False
    end: int = 0

    @property
    def route(self) -> tuple[Step, ...]:
        """The keys and indexes from the root."""
        steps: list[Step] = []
        entry = self
        while entry.parent is not None:
            steps.append(entry.step)
            entry = entry.parent
        return tuple(reversed(steps))

    def child(self, step: Step) -> Entry | None:
        """Returns the first entry of a key or an index, or None."""
        found = (each for each in self.children if each.step == step and not each.is_stub)
        return next(found, None)

    def text_of(self, step: Step) -> str | None:
        """Returns the scalar of a key, or None."""
        found = self.child(step)
        return found.value if found else None

    def walk(self) -> Iterator[Entry]:
        """Yields the entries below, in the order of the text."""
        pending = [*reversed(self.children)]
        while pending:
            entry = pending.pop()
            yield entry
            pending += reversed(entry.children)
