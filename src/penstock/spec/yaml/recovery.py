"""The parts of a YAML file beside its syntax errors: whole sections and entries of sections."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from penstock.core.errors import SpecError, ValidationErrors, raise_all
from penstock.spec.parsed import MissingParts, combine
from penstock.spec.tree.document import DUPLICATE_KEY
from penstock.spec.tree.nodes import File, Node
from penstock.spec.yaml.composer import Composer

_UNPRINTABLE = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LINE = re.compile(r"[^\n]*\n?")
_START = re.compile(r"""( *)(- |-$|["']?[^\s"'#:{}\[\],]+["']?[ \t]*:(?=\s|$))""")
"""The start of a line with a key or a list item, and its indentation."""
_NAME = re.compile(r"""[^\s"':{}\[\],]+(?=["']?\s*:)""")
_WITHOUT_NAMES = {"name", "description", "runtime", "dead_letter", "sinks", "tests"}
"""The sections that define no names for other sections."""
_UNRECOVERABLE = re.compile(r"\s*[{\[]|(?s:.*)^<<<<<<< ", re.MULTILINE)
_LOCAL = {"invalid-yaml", "unknown-alias"}
_MAX_ERRORS = 50


@dataclass(frozen=True)
class ValidPart:
    """The tree of a file without the parts with syntax errors, and these errors."""

    root: Node | None
    errors: tuple[SpecError, ...]
    missing: MissingParts | None


def compose_valid_part(file: File) -> ValidPart:
    """Returns the tree of a file without the entries of sections that have syntax errors.

    Keys that occur twice are `errors`, and are in the tree once. Raises SpecError or
    ValidationErrors if a syntax error may concern the whole file.
    """
    errors = list(_unprintable_characters(file))
    cut, missing = _without(file, errors, errors)
    while True:
        composer = Composer(cut)
        root = None
        try:
            root = composer.compose()
            found = [error for error in composer.errors if error.code != DUPLICATE_KEY]
        except SpecError as error:
            found = [error]
        if not found:
            return ValidPart(root, (*errors, *composer.errors), missing)
        if missing is not None and any(error.code == "unknown-alias" for error in found):
            raise_all(errors)
        errors += found
        cut, more = _without(cut, found, errors)
        missing = combine((missing, more))


def _without(
    file: File, found: list[SpecError], errors: list[SpecError]
) -> tuple[File, MissingParts | None]:
    """Returns the file with blanks in place of the parts that have the errors `found`.

    Raises all `errors` if there is no such part.
    """
    missing: MissingParts | None = None
    for error in found:
        is_local = error.where is not None and error.code in _LOCAL
        part = _part(file.text, error.where.line - 1) if error.where and is_local else None
        if part is None or len(errors) > _MAX_ERRORS or _UNRECOVERABLE.match(file.text):
            raise ValidationErrors(errors) if len(errors) > 1 else errors[0]
        start, end, names = part
        blank = re.sub(r"[^\r\n]", " ", file.text[start:end])
        file = replace(file, text=file.text[:start] + blank + file.text[end:])
        missing = combine((missing, names))
    return file, missing


def _unprintable_characters(file: File) -> list[SpecError]:
    first = {
        file.location(match.start()).line: match
        for match in reversed([*_UNPRINTABLE.finditer(file.text)])
    }
    return [
        SpecError(
            f"the character U+{ord(match[0]):04X} is not allowed in a YAML file",
            code="invalid-yaml",
            where=file.location(match.start(), match.end()),
            hint="remove the character, or write an escape sequence in a double-quoted text",
        )
        for match in reversed(first.values())
    ]


def _part(text: str, number: int) -> tuple[int, int, MissingParts] | None:
    """Returns the start, the end and the names of the entry with a line, or of its section.

    None if no line at or above it begins a section.
    """
    lines = [match for match in _LINE.finditer(text) if match[0]]
    starts = {index: match for index, line in enumerate(lines) if (match := _START.match(line[0]))}
    sections = [index for index, match in starts.items() if not match[1] and match[2][0] != "-"]
    section = max((index for index in sections if index <= number), default=None)
    if section is None:
        return None
    after = min((index for index in sections if index > number), default=len(lines))
    entries = _entries(starts, section, after)
    first = max((index for index in entries if index <= number), default=section)
    last = min((index for index in entries if index > first), default=after)
    if first == section:
        last = after
    start, end = lines[first].start(), lines[last - 1].end()
    name = starts[section][2].rstrip(" \t:").strip("\"'")
    names = {*_NAME.findall(text[start:end]), *([] if first > section else [name])}
    others = name not in _WITHOUT_NAMES and (first == section or name == "include")
    return start, end, MissingParts(frozenset(names), others)


def _entries(starts: dict[int, re.Match[str]], section: int, after: int) -> list[int]:
    """Returns the lines that begin the entries of a section: those indented as the first one."""
    below = [index for index in starts if section < index < after]
    return [index for index in below if starts[index][1] == starts[below[0]][1]]
