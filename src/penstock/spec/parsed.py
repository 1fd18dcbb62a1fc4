"""The pipeline as a front end reads it: data with locations, errors, and parts that are missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from penstock.core.errors import PenstockError, SpecError
from penstock.core.location import Location
from penstock.spec.source_map import Route, SourceMap

Overrides = Mapping[str, str] | Sequence[str]
"""Replacements of values of a pipeline: `path=value` texts, or a map of path to value."""


_ERRORS_OF_ONE_FILE = {
    "duplicate-key", "duplicate-name", "invalid-python", "invalid-schema", "invalid-sql",
    "invalid-value", "unknown-option", "unknown-type", "wrong-type",
}  # fmt: skip
"""The errors of a file by itself. Options of another file may replace, but not correct them."""


@dataclass(frozen=True)
class Replacement:
    """An option of a file that replaces the option of an earlier file."""

    route: Route
    where: Location
    replaced: Location


@dataclass(frozen=True)
class MissingParts:
    """The parts of files that could not be read, whose errors are reported.

    `names` are the names of their nodes and functions. With `others` they may have further names,
    and with `options` further options of all nodes.
    """

    names: frozenset[str] = frozenset()
    others: bool = False
    options: bool = False

    def may_have(self, name: str) -> bool:
        """Returns whether a node or a function of the name may be in these parts."""
        return self.others or name.casefold() in {each.casefold() for each in self.names}

    def __or__(self, other: MissingParts | None) -> MissingParts:
        if other is None:
            return self
        return MissingParts(
            self.names | other.names, self.others or other.others, self.options or other.options
        )

    def may_correct(self, error: PenstockError) -> bool:
        """Returns whether an option in these parts may be the correction of an error."""
        return self.options and error.code not in _ERRORS_OF_ONE_FILE


def combine(parts: Iterable[MissingParts | None]) -> MissingParts | None:
    """Returns the missing parts of several files, None without any."""
    return reduce(lambda left, right: left | right if left else right, parts, None)


@dataclass(frozen=True)
class ParsedPipeline:
    """A pipeline as its front end read it, before validation.

    `data` has the structure of `PipelineSpec`, with the options of connections in the nodes that
    use them. `source_map` is None if a file could not be read.
    """

    data: dict[str, Any] = field(default_factory=dict)
    source_map: SourceMap | None = None
    errors: Sequence[PenstockError] = ()
    warnings: Sequence[SpecError] = ()
    """Likely errors that do not prevent a run."""
    replacements: Sequence[Replacement] = ()
    """The options that a file replaces in an earlier file."""
    missing: MissingParts | None = None
    """The parts that could not be read; None if all could."""
    files: tuple[str, ...] = ()
    """The files without their includes; `-` is standard input."""
