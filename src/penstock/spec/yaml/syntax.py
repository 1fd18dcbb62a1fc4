"""Syntax errors of YAML, in terms of the file instead of the grammar."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from ruamel.yaml.error import MarkedYAMLError

from penstock.core.errors import SpecError
from penstock.core.location import Location
from penstock.core.text import did_you_mean
from penstock.spec.tree.nodes import File, Node, ScalarNode, Span

_QUOTE = "put the text in quotes"
_SAME_COLUMN = "align the keys of a map in one column"

_OPEN_QUOTE = "this quote is not closed"
_CLOSE_QUOTE = "add the same quote at the end of the text"
_OPENING = re.compile(r"[:,\[{-]\s+[\"']")
_KEY = re.compile(r"""([ -]*)["']?[\w.-]+["']?:(?=\s|$)""")


@dataclass(frozen=True)
class _Rule:
    """`pattern` matches the message of the parser; `at_start` locates the start of the part."""

    pattern: str
    message: str
    hint: str | None = None
    at_start: bool = False


_RULES = [
    _Rule(
        r"while scanning a quoted scalar.*unexpected (end of stream|document separator)",
        _OPEN_QUOTE,
        _CLOSE_QUOTE,
        at_start=True,
    ),
    _Rule(
        r"unknown escape character",
        "a double-quoted text has an unknown escape",
        "use single quotes, which have no escapes",
    ),
    _Rule(r"character '\\t'", "a tab is not allowed here", "indent with spaces"),
    _Rule(r"character '[`@%]'", "a text cannot begin with this character", _QUOTE),
    _Rule(
        r"mapping values are not allowed",
        'a ":" is not expected here',
        'put a text with ": " in quotes',
    ),
    _Rule(
        r"could not find expected ':'",
        'expected "key: value"',
        'add a space after the colon of a key, and "|" before a text of several lines',
        at_start=True,
    ),
    _Rule(
        r"while parsing a flow (sequence|mapping)",
        "this bracket is not closed, or a comma is missing",
        at_start=True,
    ),
    _Rule(
        r"while parsing a block mapping.*(block sequence entry|'-')",
        "expected a key, found a list item",
        "check the indentation",
    ),
    _Rule(r"expected <block end>", "the indentation differs from the lines above", _SAME_COLUMN),
    _Rule(
        r"sequence entries are not allowed",
        "a list item cannot begin here",
        "start the list on a line of its own, or quote the text",
    ),
    _Rule(
        r"block scalar",
        "this is not a valid start of a text of several lines",
        'write nothing but a comment after "|"',
    ),
    _Rule(r"expected '<document start>'|expected the node", "unexpected text", _QUOTE),
    _Rule(r"tag", "tags such as !name are not supported", _QUOTE),
    _Rule(r"anchor|alias", "a text cannot begin with & or *", _QUOTE),
]


def explain(
    error: MarkedYAMLError, file: File, bracket: int | None, quoted: Sequence[Span] = ()
) -> SpecError:
    """Returns the error for a message of the parser.

    `bracket` is the last open bracket, and `quoted` are the quoted texts before the error.
    """
    words = f"{error.context or ''} {error.problem or ''}"
    rule = next((rule for rule in _RULES if re.search(rule.pattern, words)), None)
    mark = error.problem_mark or error.context_mark
    if rule and rule.at_start and error.context_mark:
        mark = error.context_mark
    index = min(mark.index, max(len(file.text) - 1, 0)) if mark else 0
    return (
        _conflict(file)
        or _quote_before_keys(file, index, quoted)
        or _expression_in_brackets(file, index)
        or _template(file, index)
        or _unexpected_colon(words, file, index)
        or _text_after_value(words, file, index)
        or _open_bracket(words, file, index, bracket)
        or SpecError(
            rule.message if rule else f"invalid YAML: {(error.problem or '').strip()}",
            code="invalid-yaml",
            where=file.location(index),
            hint=rule.hint if rule else None,
        )
    )


def unparsable(error: Exception, file: File) -> SpecError:
    """Returns the error of a file for an exception of the parser without a location."""
    version = re.search(r"^%YAML.*", file.text, re.MULTILINE)
    if isinstance(error, AssertionError) and version is not None:
        where = file.location(*version.span())
        return _error(f"expected YAML 1.2, found {version[0]}", where, "remove the line")
    return SpecError(f"invalid YAML: {error}", code="invalid-yaml")


def _error(message: str, where: Location, hint: str | None = None) -> SpecError:
    return SpecError(message, code="invalid-yaml", where=where, hint=hint)


def _conflict(file: File) -> SpecError | None:
    match = re.search(r"^<<<<<<< .*$", file.text, re.MULTILINE)
    if not match:
        return None
    where = file.location(match.start(), match.end())
    return _error("the file has an unresolved merge conflict", where)


def _quote_before_keys(file: File, index: int, quoted: Sequence[Span]) -> SpecError | None:
    """Returns the error of a quote that encloses keys, up to the quote of another value.

    The lines of a quoted text are indented deeper than the key of the line with its first quote.
    """
    end = quoted[-1].end if quoted else 0
    spans = [(span.start, span.end) for span in quoted]
    if match := _OPENING.search(file.text, end, index):
        spans.append((match.end() - 1, index))
    for start, end in spans:
        others = file.text[start:end].split("\n")[1:]
        line = file.location(start).text
        indent = len(line) - len(line.lstrip(" -"))
        keys = (match for other in others if (match := _KEY.match(other)))
        if any(len(match[1]) <= indent for match in keys):
            return _error(_OPEN_QUOTE, file.location(start), _CLOSE_QUOTE)
    return None


def _expression_in_brackets(file: File, index: int) -> SpecError | None:
    line = file.location(index).text
    if not re.search(r"[\[{][^\"']*\0", line.replace("${", "\0")):
        return None
    match = re.search(r"\$\{[^}]*\}?", line)
    start = _line_start(file, index)
    assert match is not None
    return _error(
        "${...} between [ ] or { } is not quoted",
        file.location(start + match.start(), start + match.end()),
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
    return _error(
        "templates such as {{ name }} are not supported",
        where,
        "write ${NAME} to read the environment, or put the text in quotes",
    )


def _unexpected_colon(words: str, file: File, index: int) -> SpecError | None:
    """Returns the error of a key below `key:value`, or deeper than a key with a value."""
    if "mapping values are not allowed" not in words:
        return None
    location = file.location(index)
    number = location.line - 1
    while number > 1 and not file.line(number).strip():
        number -= 1
    above = file.line(number)
    indent = len(location.text) - len(location.text.lstrip())
    if ":" in location.text[: location.column - 1].replace("://", ""):
        return None
    if match := re.match(r"\s*(?:- +)?[\w.-]+(:)\S", above):
        start = _line_start(file, index) - sum(
            len(file.line(line_number)) + 1 for line_number in range(number, location.line)
        )
        return _error(
            'expected a space after the ":" of a key',
            file.location(start + match.start(1), start + match.end(1)),
        )
    if indent > len(above) - len(above.lstrip()) and re.match(r"\s*(?:- +)?[\w.-]+: +\S", above):
        start = _line_start(file, index) + indent
        return _error(
            "this line is indented deeper than the key above, which has a value",
            file.location(start, index),
            _SAME_COLUMN,
        )
    return None


def _text_after_value(words: str, file: File, index: int) -> SpecError | None:
    """Returns the error of text after a value in quotes: `where: 'a' = 'b'`."""
    location = file.location(index)
    before = location.text[: location.column - 1].rstrip()
    if "expected <block end>" not in words or not before or before.endswith(("-", ":")):
        return None
    return _error(
        f"unexpected text after the {before[-1]} that ends the value",
        file.location(index, index + len(location.text)),
        "put the whole text in quotes"
        if before[-1] in "\"'"
        else "remove the text, or put the whole text in quotes",
    )


def _open_bracket(words: str, file: File, index: int, bracket: int | None) -> SpecError | None:
    if bracket is None:
        return None
    opened = file.location(bracket)
    if "<stream end>" in words:
        return _error("this bracket is not closed", opened)
    if match := re.search(r"but (?:got|found) '([\]}])'", words):
        location = _location_of(match[1], file, index)
        return _error(f"this {match[1]} does not close the bracket at {opened}", location)
    return None


def _location_of(character: str, file: File, index: int) -> Location:
    """Returns the location of a character at or after `index`."""
    position = file.text.find(character, index)
    return file.location(position if position >= 0 else index)


def _line_start(file: File, index: int) -> int:
    return index - (file.location(index).column - 1)


def unknown_tag(file: File, start: int, end: int) -> SpecError:
    """Returns the error of a tag such as `!important`."""
    return _error(
        "unknown tag; a value that begins with ! is a tag in YAML",
        file.location(start, end),
        _QUOTE,
    )


def unknown_alias(name: str, anchors: Collection[str], where: Location) -> SpecError:
    """Returns the error of an alias without an anchor."""
    if not anchors:
        message, hint = "a text cannot begin with *", f'put the text in quotes: "*{name}"'
    else:
        message = f'the alias "*{name}" has no anchor "&{name}" above'
        hint = did_you_mean(name, anchors) or _QUOTE
    return SpecError(message, code="unknown-alias", where=where, hint=hint)


def odd_blank(key: ScalarNode) -> SpecError:
    """Returns the error of indentation by other blanks than spaces."""
    return _error(
        f"a line begins with the character U+{ord(key.written[0]):04X}, which looks like a space",
        replace(key.location, length=1),
        "indent with ordinary spaces",
    )


def key_not_text(key: Node) -> SpecError:
    """Returns the error of a key that is a map or a list."""
    if "{{" in key.location.text:
        return _not_a_template(key.location)
    return _error("expected text as the key, found a map or a list", key.location, _QUOTE)
