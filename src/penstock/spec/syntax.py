"""The YAML parser's complaints in words for people who do not read its grammar."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ruamel.yaml.error import MarkedYAMLError

from penstock.core.errors import SpecError
from penstock.core.location import Location
from penstock.spec.nodes import File, Node


@dataclass(frozen=True)
class _Rule:
    """`pattern` is looked for in the parser's words; `at_start` marks where the part begins."""

    pattern: str
    message: str
    hint: str | None = None
    at_start: bool = False


_RULES = [
    _Rule(
        r"while scanning a quoted scalar.*unexpected (end of stream|document separator)",
        "this quote is never closed",
        at_start=True,
    ),
    _Rule(
        r"unknown escape character",
        "a double-quoted text has an unknown escape",
        "use single quotes, in which a backslash is a backslash",
    ),
    _Rule(r"character '\\t'", "a tab cannot stand here", "indent with spaces"),
    _Rule(
        r"character '[`@%]'",
        "a text cannot begin with this character",
        "put the text in quotes",
    ),
    _Rule(
        r"mapping values are not allowed",
        'a ":" is not expected here',
        "put a text that has a colon in quotes, or check the indentation",
    ),
    _Rule(
        r"could not find expected ':'",
        'this line is not "key: value"',
        'a space belongs after the colon of a key, and a text of several lines needs "|"',
        at_start=True,
    ),
    _Rule(
        r"while parsing a flow (sequence|mapping)|flow",
        "this bracket is never closed, or a comma is missing behind it",
        at_start=True,
    ),
    _Rule(
        r"while parsing a block mapping.*(block sequence entry|'-')",
        "a list item where a key is expected",
        "check the indentation",
    ),
    _Rule(
        r"expected <block end>",
        "the indentation does not fit the lines above",
        "keys of one map begin in the same column",
    ),
    _Rule(
        r"sequence entries are not allowed",
        "a list item cannot begin here",
        "begin the list on a line of its own, or quote the text",
    ),
    _Rule(
        r"block scalar",
        "this is not how a text of several lines begins",
        'nothing but a comment may follow "|" on its line',
    ),
    _Rule(r"duplicate anchor", "this anchor is there twice"),
    _Rule(r"tag", "a tag such as !name is not known here", "put the text in quotes"),
    _Rule(r"anchor|alias", "in YAML a leading & or * has a meaning", "put the text in quotes"),
]


def explain(error: MarkedYAMLError, file: File) -> SpecError:
    """The mistake behind the parser's complaint."""
    words = f"{error.context or ''} {error.problem or ''}"
    rule = next((r for r in _RULES if re.search(r.pattern, words)), None)
    mark = error.problem_mark or error.context_mark
    if rule and rule.at_start and error.context_mark:
        mark = error.context_mark
    index = min(mark.index, max(len(file.text) - 1, 0)) if mark else 0
    place = file.location(index)
    if "${" in place.text and _in_brackets(place.text):
        return SpecError(
            "a ${...} between [ ] or { } needs quotes",
            code="invalid-yaml",
            where=_expression(file, index),
            hint='as in ["${NAME}"]',
        )
    if "{{" in place.text:
        return SpecError(
            "{{ ... }} is a template of another tool, and here it is a map in a map",
            code="invalid-yaml",
            where=file.location(_line_start(file, index) + place.text.index("{{")),
            hint="write ${NAME} to read the environment, or put the text in quotes",
        )
    message = rule.message if rule else f"not YAML: {(error.problem or '').strip()}"
    return SpecError(message, code="invalid-yaml", where=place, hint=rule.hint if rule else None)


def _line_start(file: File, index: int) -> int:
    return index - (file.location(index).column - 1)


def _in_brackets(line: str) -> bool:
    return re.search(r"[\[{][^\"']*\0", line.replace("${", "\0")) is not None


def _expression(file: File, index: int) -> Location:
    start = _line_start(file, index)
    line = file.location(index).text
    found = re.search(r"\$\{[^}]*\}?", line)
    assert found is not None
    return file.location(start + found.start(), start + found.end())


def unknown_tag(file: File, start: int, end: int) -> SpecError:
    """The mistake that a value has a tag such as `!important`."""
    return SpecError(
        "a value that begins with ! is a tag in YAML, and this tag is not known",
        code="invalid-yaml",
        where=file.location(start, end),
        hint="put the text in quotes",
    )


def key_not_text(key: Node, file: File) -> SpecError:
    """The mistake that a key is a map or a list."""
    line = key.location.text
    return SpecError(
        "a key is text, and this is a map or a list",
        code="invalid-yaml",
        where=key.location,
        hint="write ${NAME} to read the environment, or put the text in quotes"
        if "{{" in line
        else "put the text in quotes",
    )
