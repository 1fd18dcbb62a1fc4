"""The YAML parser's complaints in words for people who do not read its grammar."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from ruamel.yaml.error import MarkedYAMLError

from penstock.core.errors import SpecError
from penstock.core.location import Location
from penstock.core.text import did_you_mean
from penstock.spec.nodes import File, Node, Scalar

_QUOTE = "put the text in quotes"
_SAME_COLUMN = "keys of one map begin in the same column"


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
        "the same quote belongs at the end of the text",
        at_start=True,
    ),
    _Rule(
        r"unknown escape character",
        "a double-quoted text has an unknown escape",
        "use single quotes, in which a backslash is a backslash",
    ),
    _Rule(r"character '\\t'", "a tab cannot stand here", "indent with spaces"),
    _Rule(r"character '[`@%]'", "a text cannot begin with this character", _QUOTE),
    _Rule(
        r"mapping values are not allowed",
        'a ":" is not expected here',
        'a text that has ": " needs quotes',
    ),
    _Rule(
        r"could not find expected ':'",
        'this line is not "key: value"',
        'a space belongs after the colon of a key, and a text of several lines needs "|"',
        at_start=True,
    ),
    _Rule(
        r"while parsing a flow (sequence|mapping)",
        "this bracket is never closed, or a comma is missing behind it",
        at_start=True,
    ),
    _Rule(
        r"while parsing a block mapping.*(block sequence entry|'-')",
        "a list item where a key is expected",
        "check the indentation",
    ),
    _Rule(r"expected <block end>", "the indentation does not fit the lines above", _SAME_COLUMN),
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
    _Rule(r"expected '<document start>'|expected the node", "this is not expected here", _QUOTE),
    _Rule(r"tag", "a tag such as !name is not known here", _QUOTE),
    _Rule(r"anchor|alias", "in YAML a leading & or * has a meaning", _QUOTE),
]


def explain(error: MarkedYAMLError, file: File, bracket: int | None) -> SpecError:
    """The mistake behind the parser's complaint; `bracket` is where the last open one stands."""
    words = f"{error.context or ''} {error.problem or ''}"
    rule = next((r for r in _RULES if re.search(r.pattern, words)), None)
    mark = error.problem_mark or error.context_mark
    if rule and rule.at_start and error.context_mark:
        mark = error.context_mark
    index = min(mark.index, max(len(file.text) - 1, 0)) if mark else 0
    return (
        _conflict(file)
        or _expression_in_brackets(file, index)
        or _template(file, index)
        or _unexpected_colon(words, file, index)
        or _behind_a_value(words, file, index)
        or _open_bracket(words, file, index, bracket)
        or SpecError(
            rule.message if rule else f"not YAML: {(error.problem or '').strip()}",
            code="invalid-yaml",
            where=file.location(index),
            hint=rule.hint if rule else None,
        )
    )


def _mistake(message: str, where: Location, hint: str | None = None) -> SpecError:
    return SpecError(message, code="invalid-yaml", where=where, hint=hint)


def _conflict(file: File) -> SpecError | None:
    found = re.search(r"^<<<<<<< .*$", file.text, re.MULTILINE)
    if not found:
        return None
    where = file.location(found.start(), found.end())
    return _mistake("a merge conflict is left in the file", where)


def _expression_in_brackets(file: File, index: int) -> SpecError | None:
    line = file.location(index).text
    if not re.search(r"[\[{][^\"']*\0", line.replace("${", "\0")):
        return None
    found = re.search(r"\$\{[^}]*\}?", line)
    start = _line_start(file, index)
    assert found is not None
    return _mistake(
        "${...} between [ ] or { } needs quotes",
        file.location(start + found.start(), start + found.end()),
        "put the whole value in quotes",
    )


def _template(file: File, index: int) -> SpecError | None:
    line = file.location(index).text
    if "{{" not in line and "{%" not in line:
        return None
    column = line.find("{{") if "{{" in line else line.find("{%")
    start = _line_start(file, index)
    return _not_a_template(file.location(start + column, start + len(line)))


def _not_a_template(where: Location) -> SpecError:
    return _mistake(
        "templates of other tools, such as {{ name }}, are not known here",
        where,
        "write ${NAME} to read the environment, or put the text in quotes",
    )


def _unexpected_colon(words: str, file: File, index: int) -> SpecError | None:
    """A key below `key:value` or deeper than a key that has a value."""
    if "mapping values are not allowed" not in words:
        return None
    place = file.location(index)
    number = place.line - 1
    while number > 1 and not file.line(number).strip():
        number -= 1
    above = file.line(number)
    indent = len(place.text) - len(place.text.lstrip())
    if ":" in place.text[: place.column - 1].replace("://", ""):
        return None
    if glued := re.match(r"\s*(?:- +)?[\w.-]+(:)\S", above):
        start = _line_start(file, index) - sum(
            len(file.line(each)) + 1 for each in range(number, place.line)
        )
        return _mistake(
            'a space belongs after the ":" of a key',
            file.location(start + glued.start(1), start + glued.end(1)),
        )
    if indent > len(above) - len(above.lstrip()) and re.match(r"\s*(?:- +)?[\w.-]+: +\S", above):
        start = _line_start(file, index) + indent
        return _mistake(
            "this line is indented deeper than the key above it, which has a value",
            file.location(start, index),
            _SAME_COLUMN,
        )
    return None


def _behind_a_value(words: str, file: File, index: int) -> SpecError | None:
    """`where: 'a' = 'b'`: a value in quotes or brackets that goes on behind them."""
    place = file.location(index)
    before = place.text[: place.column - 1].rstrip()
    if "expected <block end>" not in words or not before or before.endswith(("-", ":")):
        return None
    return _mistake(
        f"the value ends before this, with the {before[-1]}",
        file.location(index, index + len(place.text)),
        "put the whole text in quotes, not a part of it"
        if before[-1] in "\"'"
        else "remove it, or put the whole text in quotes",
    )


def _open_bracket(words: str, file: File, index: int, bracket: int | None) -> SpecError | None:
    if bracket is None:
        return None
    opened = file.location(bracket)
    if "<stream end>" in words:
        return _mistake("this bracket is never closed", opened)
    if found := re.search(r"but (?:got|found) '([\]}])'", words):
        place = _location_of(found[1], file, index)
        return _mistake(f"this {found[1]} does not close the bracket at {opened}", place)
    return None


def _location_of(character: str, file: File, index: int) -> Location:
    """The place of a character at `index`, or after it on its line."""
    found = file.text.find(character, index)
    return file.location(found if found >= 0 else index)


def _line_start(file: File, index: int) -> int:
    return index - (file.location(index).column - 1)


def unknown_tag(file: File, start: int, end: int) -> SpecError:
    """The mistake that a value has a tag such as `!important`."""
    return _mistake(
        "a value that begins with ! is a tag in YAML, and this tag is not known",
        file.location(start, end),
        _QUOTE,
    )


def unknown_alias(name: str, anchors: Collection[str], where: Location) -> SpecError:
    """The mistake that a value begins with `*` and repeats nothing."""
    if not anchors:
        message, hint = "a text that begins with * needs quotes", f'as in "*{name}"'
    else:
        message = f'"*{name}" repeats what "&{name}" names, and there is none above'
        hint = did_you_mean(name, anchors) or _QUOTE
    return SpecError(message, code="unknown-alias", where=where, hint=hint)


def odd_blank(key: Scalar) -> SpecError:
    """The mistake that a key begins with a blank that is not a space."""
    return _mistake(
        f"a line begins with the character U+{ord(key.written[0]):04X}, which looks like a space",
        replace(key.location, length=1),
        "indent with ordinary spaces",
    )


def key_not_text(key: Node) -> SpecError:
    """The mistake that a key is a map or a list."""
    if "{{" in key.location.text:
        return _not_a_template(key.location)
    return _mistake("a key is text, and this is a map or a list", key.location, _QUOTE)
