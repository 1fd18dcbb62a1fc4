"""Preprocessors: functions that change the text of a file before it is parsed.

The first lines of a file name them, as `# preprocess: unwrap {key: definition}` in YAML or
`-- preprocess: tools:unwrap` in a SQL script. A name is that of an entry point, and `module:name`
that of a function in a Python file beside the file. The functions are called in this order.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from penstock.core.errors import SpecError
from penstock.core.exits import exception_text, exits_as_exceptions
from penstock.core.location import Location
from penstock.core.plugin_files import import_file
from penstock.core.plugins import (
    BrokenPlugin,
    BrokenPluginError,
    entry_points,
    failing_place,
    load_plugin,
)
from penstock.core.python_permission import CODE, HINT, python_permitted
from penstock.core.text import did_you_mean

GROUP = "penstock.preprocessors"
"""The entry points of preprocessors: functions from a text and options to a text."""
_COMMENT = re.compile(r"[ \t]*(?:#|--)(?P<text>.*)")
_DIRECTIVE = re.compile(r"\s*preprocess:\s*(?P<name>[\w.:-]+)\s*(?P<options>.*?)\s*$")

Preprocessor = Callable[..., str]
Call = tuple[Location, str, Mapping[str, Any]]
"""The place, the name and the options of the call of a preprocessor."""


@dataclass(frozen=True)
class OriginalLines:
    """The lines of a file before its preprocessors: `numbers` has that of each line after them.

    `unchanged` are the lines that the preprocessors have not changed. Lines count from 1.
    """

    lines: tuple[str, ...]
    numbers: tuple[int, ...]
    unchanged: frozenset[int]

    def original(self, line: int) -> tuple[int, str, bool]:
        """Returns the number and the text of the original of a line, and whether it is the same."""
        number = self.numbers[line - 1] if 1 <= line <= len(self.numbers) else 1
        text = self.lines[number - 1] if number <= len(self.lines) else ""
        return number, text, line in self.unchanged

    def processed(self, number: int) -> int:
        """Returns the line after the preprocessors of an original line."""
        return max(1, bisect_right(self.numbers, number))


_originals: dict[str, tuple[str, OriginalLines]] = {}
"""The text of each preprocessed file after its preprocessors, with its original lines."""


def original_lines(name: str, text: str) -> OriginalLines | None:
    """Returns the original lines of a preprocessed text of a file; None for another text."""
    known = _originals.get(name)
    return known[1] if known is not None and known[0] == text else None


def preprocess(text: str, name: str, base: Path) -> str:
    """Returns the text of a file after the preprocessors that it names. Raises SpecError."""
    text = text.removeprefix("\ufeff")
    return run_preprocessors(text, name, base, _directives(text, name))


def run_preprocessors(text: str, name: str, base: Path, calls: Iterable[Call]) -> str:
    """Returns the text of a file after the calls of preprocessors. Raises SpecError."""
    processed = text
    for where, preprocessor, options in calls:
        function = _find(preprocessor, base, where)
        try:
            with exits_as_exceptions(KeyboardInterrupt):
                processed = function(processed, options)
        except Exception as error:
            place = failing_place(error).replace(f"{base}/", "")
            raise SpecError(
                f'the preprocessor "{preprocessor}" failed: {exception_text(error)}'
                + (f" ({place})" if place else ""),
                code="failed-preprocessor", where=where,
            ) from error  # fmt: skip
        if not isinstance(processed, str):
            raise SpecError(
                f'the preprocessor "{preprocessor}" returned {type(processed).__name__}, '
                "expected text",
                code="failed-preprocessor", where=where,
            )  # fmt: skip
    if processed == text:
        _originals.pop(name, None)
    else:
        _originals[name] = processed, _compare(text, processed)
    return processed


def broken_preprocessors() -> Iterator[BrokenPlugin]:
    """Yields the preprocessors of packages that cannot be used. Imports all of them."""
    for entry in entry_points(group=GROUP):
        try:
            load_plugin("preprocessor", entry, _fault)
        except BrokenPluginError as error:
            yield error.plugin


def preprocessors() -> dict[str, EntryPoint]:
    """Returns the entry points of preprocessors by name. Imports nothing."""
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def preprocessor_modules(path: Path) -> Iterator[Path]:
    """Yields the Python files with the preprocessors that the first lines of a file name."""
    for _, preprocessor, _ in _directives(path.read_text("utf-8", "replace"), str(path)):
        module, colon, _ = preprocessor.partition(":")
        if colon:
            yield path.absolute().parent / f"{module}.py"


def _directives(text: str, name: str) -> Iterator[Call]:
    """Yields the calls in the first comments of a file."""
    for number, line in enumerate(text.splitlines(), 1):
        comment = _COMMENT.match(line)
        if comment is None:
            if line.strip():
                return
            continue
        match = _DIRECTIVE.match(comment["text"])
        if match is None:
            continue
        where = Location(
            name, number, comment.start("text") + match.start("name") + 1, len(match["name"]), line
        )
        yield where, match["name"], _options(match["options"], where)


def _options(text: str, where: Location) -> Mapping[str, Any]:
    try:
        options = YAML(typ="safe").load(text) if text else {}
    except YAMLError:
        options = None
    if not isinstance(options, dict):
        raise SpecError(
            f"expected options such as {{key: value}}, found {text}", code="wrong-type", where=where
        )
    return options


def _find(name: str, base: Path, where: Location) -> Preprocessor:
    """Returns a preprocessor. Raises SpecError."""
    module, colon, function = name.partition(":")
    if colon:
        return _find_in_file(base / f"{module}.py", name, function, where)
    known = preprocessors()
    if name not in known:
        raise SpecError(
            f'there is no preprocessor "{name}"', code="unknown-type", where=where,
            hint=did_you_mean(name, known) or "write file:function for a Python file",
        )  # fmt: skip
    try:
        found: Preprocessor = load_plugin("preprocessor", known[name], _fault)
    except BrokenPluginError as error:
        raise SpecError(
            error.plugin.message, code="broken-plugin", where=where,
            hint="correct, upgrade or remove the package",
        ) from error  # fmt: skip
    return found


def _find_in_file(path: Path, name: str, function: str, where: Location) -> Preprocessor:
    found: Any
    if not python_permitted():
        raise SpecError(
            f'the preprocessor "{name}" of a Python file is not permitted on this server',
            code=CODE, where=where, hint=HINT,
        )  # fmt: skip
    try:
        with exits_as_exceptions(KeyboardInterrupt):
            found = getattr(import_file(path), function, None)
    except OSError as error:
        raise SpecError(
            f"cannot read {path}: {error.strerror}", code="missing-file", where=where
        ) from None
    except Exception as error:
        place = failing_place(error).replace(str(path), path.name) or path.name
        raise SpecError(
            f'the preprocessor "{name}" cannot be imported: {exception_text(error)} ({place})',
            code="broken-plugin", where=where,
        ) from error  # fmt: skip
    reason = _fault(found)
    if reason is not None:
        raise SpecError(f"{path} has no function {function}", code="unknown-function", where=where)
    preprocessor: Preprocessor = found
    return preprocessor


def _fault(found: object) -> str | None:
    return None if callable(found) else f"expected a function, found {type(found).__name__}"


def _compare(before: str, after: str) -> OriginalLines:
    """Returns the original line of each line: of a changed one the line at its place."""
    old, new = _lines(before), _lines(after)
    numbers: list[int] = []
    unchanged: set[int] = set()
    for tag, start, stop, new_start, new_stop in SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        if tag == "equal":
            unchanged.update(range(new_start + 1, new_stop + 1))
            numbers += range(start + 1, stop + 1)
        else:
            last = max(stop, 1) if stop > start else max(start, 1)
            numbers += [min(start + 1 + i, last) for i in range(new_stop - new_start)]
    return OriginalLines(tuple(old), tuple(numbers), frozenset(unchanged))


def _lines(text: str) -> Sequence[str]:
    return re.split(r"\r\n|\r|\n", text)
