"""Front ends: readers of files in one language into the data of a pipeline."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, reduce
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Protocol

from penstock.core.errors import PenstockError, SpecError
from penstock.core.location import Location
from penstock.spec.source_map import Route, SourceMap

GROUP = "penstock.front_ends"
"""The entry point group; the name of an entry is the name of a language."""
SCRIPT_SUFFIX = ".sql"
"""The suffix of SQL scripts."""
DEFAULT = "yaml"
"""The front end of files that no other front end accepts, such as standard input."""

Overrides = Mapping[str, str] | Sequence[str]
"""Replacements of values of a pipeline: `path=value` texts, or a map of path to value."""


@dataclass(frozen=True)
class Replacement:
    """An option of a file that replaces the option of an earlier file."""

    route: Route
    where: Location
    replaced: Location


@dataclass(frozen=True)
class MissingParts:
    """The parts of files that could not be read, whose errors are reported.

    `names` are the names of their nodes and functions. With `others` they may have further names.
    """

    names: frozenset[str] = frozenset()
    others: bool = False

    def may_have(self, name: str) -> bool:
        """Returns whether a node or a function of the name may be in these parts."""
        return self.others or name.casefold() in {each.casefold() for each in self.names}

    def __or__(self, other: MissingParts | None) -> MissingParts:
        if other is None:
            return self
        return MissingParts(self.names | other.names, self.others or other.others)


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


class FrontEnd(Protocol):
    """A language of pipeline files, registered in the entry point group `penstock.front_ends`."""

    def accepts(self, path: str) -> bool:
        """Returns whether the file is of this language, by its suffix or its content.

        `-` is standard input. False for an unreadable file of unknown suffix.
        """
        ...

    def read(
        self, paths: Sequence[str], *, overrides: Overrides = (), env: Mapping[str, str]
    ) -> ParsedPipeline:
        """Reads the files of one pipeline. Errors are in the result and are not raised.

        `env` is the environment of the pipeline's variables.
        """
        ...


@cache
def front_ends() -> dict[str, FrontEnd]:
    """Returns the installed front ends by name."""
    return {entry.name: entry.load()() for entry in entry_points(group=GROUP)}


def select_front_end(paths: Sequence[str]) -> FrontEnd:
    """Returns the front end that accepts the files.

    Raises SpecError if the files are of several languages.
    """
    installed = front_ends()
    names = [_language(path, installed) for path in paths] or [DEFAULT]
    for path, name in zip(paths, names, strict=False):
        if name != names[0]:
            raise SpecError(
                f"{paths[0]} is a {names[0]} file and {path} is a {name} file",
                code="several-languages",
                hint="write all files of a pipeline in one language",
            )
    return installed[names[0]]


def load(
    paths: Sequence[str | Path],
    *,
    overrides: Overrides = (),
    env: Mapping[str, str] | None = None,
) -> ParsedPipeline:
    """Reads the files of one pipeline with their front end. Errors are in the result.

    `env` defaults to the environment of the process.
    """
    names = [str(path) for path in paths]
    try:
        front_end = select_front_end(names)
    except SpecError as error:
        return ParsedPipeline(errors=[error])
    known = os.environ if env is None else env
    return replace(front_end.read(names, overrides=overrides, env=known), files=tuple(names))


def _language(path: str, installed: Mapping[str, FrontEnd]) -> str:
    others = (name for name in installed if name != DEFAULT)
    return next((name for name in others if installed[name].accepts(path)), DEFAULT)


def is_test_file(path: str | Path) -> bool:
    """Returns whether the name is one of a test file, as `x.test.yaml`."""
    return Path(path).stem.endswith(".test")


def companion_test_file(path: str | Path) -> Path:
    """Returns the path of the test file: `x.test.yaml` for `x.yaml` and for `x.sql`."""
    path = Path(path)
    suffix = ".yaml" if path.suffix == SCRIPT_SUFFIX else path.suffix
    return path.with_name(f"{path.stem}.test{suffix}")
