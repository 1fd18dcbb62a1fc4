"""Front ends: readers of files in one language into the data of a pipeline."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Protocol

from penstock.core.errors import SpecError
from penstock.core.location import Location
from penstock.core.plugins import BrokenPlugin, BrokenPluginError, entry_points, load_plugin
from penstock.spec.parsed import Overrides, ParsedPipeline
from penstock.spec.tree.document import Document

GROUP = "penstock.front_ends"
"""The entry point group of further front ends; the name of an entry is the name of a language."""
SCRIPT_SUFFIX = ".sql"
"""The suffix of SQL scripts."""
DEFAULT = "yaml"
"""The front end of files that no other front end accepts, such as standard input."""
BUILT_IN = {
    "sql": "penstock.spec.script.front_end:ScriptFrontEnd",
    "arkflow": "penstock.spec.dialects.arkflow.front_end:ArkflowFrontEnd",
    "streamling": "penstock.spec.dialects.streamling.front_end:StreamlingFrontEnd",
    "stream_data_processor": (
        "penstock.spec.dialects.stream_data_processor.front_end:StreamDataProcessorFrontEnd"
    ),
    DEFAULT: "penstock.spec.yaml.front_end:YamlFrontEnd",
}
"""The front ends of Penstock by language, in the order in which they are asked for a file."""


@dataclass(frozen=True)
class Choice:
    """A choice of the user: the language of the files, by default as recognized.

    With `strict` options that a language ignores are errors. `settings` is the name of the file of
    settings, for languages that have one beside the files of a pipeline. Without `secrets` those of
    the settings may be missing: the files are only checked.
    """

    language: str | None = None
    strict: bool = False
    settings: str | None = None
    secrets: bool = True


IGNORED = ", which is ignored"
"""The end of the warning of an option that a language ignores. An error has no such end."""
_DEFAULT_CHOICE = Choice()
CHOICE: ContextVar[Choice] = ContextVar("CHOICE", default=_DEFAULT_CHOICE)
"""The choice for the files that are read from now on."""


def choose(
    language: str | None, strict: bool, settings: str | None = None, *, secrets: bool = True
) -> None:
    """Sets the choice for the files that are read from now on. Raises SpecError."""
    if language is not None and language not in front_ends():
        raise SpecError(
            f'there is no dialect "{language}"', code="unknown-language",
            hint=f"use one of {', '.join(front_ends())}",
        )  # fmt: skip
    CHOICE.set(Choice(language, strict, settings, secrets))


class FrontEnd(Protocol):
    """A language whose files are whole pipelines."""

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


class DocumentFrontEnd(ABC):
    """A language whose files are documents: they merge with those of other such languages."""

    replaces_options = False
    """Whether the options of a later file on the command line replace those of earlier files."""
    has_queries_without_sources = False
    """Whether a file without sources may be complete, as a query of constants is."""
    hints: Mapping[str, str] = {}
    """Hints in the words of the language, where they differ from those of YAML: by the section
    `sources` or `sinks` that is missing, `unread` for a `{node}` that no node reads, and
    `unknown-type`."""

    def setting(self, name: str) -> str:
        """Returns a setting of a language that has settings beside its files; empty without it."""
        return ""

    @abstractmethod
    def accepts(self, path: str) -> bool:
        """Returns whether the file is of this language; see `FrontEnd.accepts`."""

    @abstractmethod
    def read_document(self, path: str, where: Location | None = None) -> Document:
        """Returns the document of a file, to which the location `where` refers.

        Its includes are in the document, and not read. Raises SpecError or ValidationErrors.
        """


@cache
def front_ends() -> dict[str, FrontEnd | DocumentFrontEnd]:
    """Returns the front ends by language."""
    built_in = [EntryPoint(name, value, GROUP) for name, value in BUILT_IN.items()]
    found = {entry.name: entry.load()() for entry in built_in}
    for entry in entry_points(group=GROUP):
        with suppress(BrokenPluginError):
            found[entry.name] = _load(entry)
    return found


def broken_front_ends() -> Iterator[BrokenPlugin]:
    """Yields the front ends of packages that cannot be used."""
    for entry in entry_points(group=GROUP):
        try:
            _load(entry)
        except BrokenPluginError as error:
            yield error.plugin


def _load(entry: EntryPoint) -> FrontEnd | DocumentFrontEnd:
    front_end: FrontEnd | DocumentFrontEnd = load_plugin(
        "front end", entry, lambda found: None if callable(found) else "expected a class"
    )()
    return front_end


def select_front_end(paths: Sequence[str]) -> FrontEnd | DocumentFrontEnd:
    """Returns the front end that accepts the first file.

    Raises SpecError if the files are of several languages that do not merge.
    """
    installed = front_ends()
    names = [language_of(path) for path in paths] or [DEFAULT]
    merge = all(isinstance(installed[name], DocumentFrontEnd) for name in names)
    for path, name in zip(paths, names, strict=False):
        if name != names[0] and not merge:
            raise SpecError(
                f"{paths[0]} is a {names[0]} file and {path} is a {name} file",
                code="several-languages",
                hint="write all files of a pipeline in one language",
            )
    return installed[names[0]]


def document_front_end(path: str) -> DocumentFrontEnd:
    """Returns the front end of a file among others of the same pipeline."""
    front_end = front_ends()[language_of(path)]
    if not isinstance(front_end, DocumentFrontEnd):
        front_end = front_ends()[DEFAULT]
        assert isinstance(front_end, DocumentFrontEnd)
    return front_end


def language_of(path: str) -> str:
    """Returns the language of a file: the chosen one, or the one whose front end accepts it."""
    chosen = CHOICE.get().language
    if chosen is not None and not is_test_file(path):
        return chosen
    others = {name: each for name, each in front_ends().items() if name != DEFAULT}
    return next((name for name, each in others.items() if each.accepts(path)), DEFAULT)


def is_test_file(path: str | Path) -> bool:
    """Returns whether the name is one of a test file, as `x.test.yaml`."""
    return Path(path).stem.endswith(".test")


def companion_test_file(path: str | Path) -> Path:
    """Returns the path of the test file: `x.test.yaml` for `x.yaml` and for `x.sql`."""
    path = Path(path)
    suffix = ".yaml" if path.suffix == SCRIPT_SUFFIX else path.suffix
    return path.with_name(f"{path.stem}.test{suffix}")
