"""Scripts of a shell: statements of several inputs, and the places of errors in these inputs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from penstock.cli.shell.definitions import Definitions, Entry
from penstock.cli.shell.input import NAME
from penstock.core.errors import PenstockError, flatten_errors
from penstock.core.location import Location


@dataclass(frozen=True)
class Script:
    """A script of statements. Each statement begins a line."""

    entries: tuple[Entry, ...]

    @classmethod
    def of(cls, definitions: Definitions, *first: Entry) -> Script:
        """Returns the script of definitions, after other statements."""
        others = (entry for entry in definitions.entries.values() if entry not in first)
        return cls((*first, *others))

    @cached_property
    def text(self) -> str:
        """The text of the script."""
        return "".join(f"{entry.text};\n" for entry in self.entries)

    def entry_at(self, where: Location | None) -> tuple[Entry, Location] | None:
        """Returns the statement at a location in the script, and the location in its text."""
        if where is None or where.file != NAME:
            return None
        line = where.line
        for entry in self.entries:
            alone = entry.part.alone
            count = alone.location(len(alone.text)).line
            if line <= count:
                return entry, Location(NAME, line, where.column, where.length)
            line -= count
        return None

    def relocate(self, error: PenstockError) -> PenstockError:
        """Moves the locations of an error to the inputs of the statements. Returns the error."""
        for inner in flatten_errors(error):
            found = self.entry_at(inner.where)
            if found is not None:
                entry, within = found
                inner.where = entry.part.locate(within)
        return error

    @contextmanager
    def relocating(self) -> Iterator[None]:
        """Moves the locations of errors that are raised inside."""
        try:
            yield
        except PenstockError as error:
            self.relocate(error)
            raise
