"""The options of `WITH (...)`: dotted names with values, read as maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.core.errors import SpecError
from penstock.spec.script.reader import TokenReader
from penstock.spec.script.tokens import Text
from penstock.spec.script.tree_nodes import list_node, number_node, text_node
from penstock.spec.tree.nodes import File, Node

_MAX_DEPTH = 16
_VALUE = "a value: a text in quotes, a number, TRUE, FALSE, INTERVAL or [a, b]"


@dataclass(frozen=True)
class Option:
    """An option and its value. `path` has the parts of the dotted name."""

    path: list[Text]
    value: Node

    @property
    def name(self) -> str:
        """The dotted name."""
        return ".".join(part.value for part in self.path)


def read_options(reader: TokenReader) -> list[Option]:
    """Reads options between parentheses, whose names may be repeated. Raises SpecError.

    Options with errors are missing; the errors are those of the reader.
    """
    options = reader.valid_items(lambda: _read_option(reader))
    for option in options:
        if len(option.path) > _MAX_DEPTH:
            raise SpecError(
                f"expected a name of at most {_MAX_DEPTH} parts, found {len(option.path)}",
                code="invalid-sql",
                where=reader.location(option.path[0]),
            )
    return options


def check_unique(file: File, options: Sequence[Option]) -> Sequence[Option]:
    """Returns the options. Raises SpecError for a repeated name."""
    seen: set[str] = set()
    for option in options:
        if option.name in seen:
            raise SpecError(
                f'duplicate option "{option.name}"',
                code="duplicate-key",
                where=file.location(option.path[0].start, option.path[-1].end),
                hint="remove one of the options",
            )
        seen.add(option.name)
    return options


def last_options(options: Sequence[Option]) -> tuple[list[Option], list[Option]]:
    """Returns the last option of each name, and the options before that have the same name."""
    last = {option.name: option for option in options}
    kept = [option for option in options if last[option.name] is option]
    return kept, [option for option in options if last[option.name] is not option]


def _read_option(reader: TokenReader) -> Option:
    path = _split(reader.string("the name")) if reader.is_string() else _read_path(reader)
    reader.expect("=")
    return Option(path, read_value(reader))


def _read_path(reader: TokenReader) -> list[Text]:
    path = [reader.name("the name of an option")]
    while reader.accept("."):
        path.append(reader.name("the name of an option"))
    return path


def _split(text: Text) -> list[Text]:
    """Splits a dotted name."""
    parts, start = [], text.start
    for part in text.value.split("."):
        parts.append(Text(part, start, start + len(part)))
        start += len(part) + 1
    return parts


def read_value(reader: TokenReader) -> Node:
    """Reads a value or a list of values. Raises SpecError."""
    reader.accept("ARRAY")
    for opening, closing in (("[", "]"), ("(", ")")):
        if reader.at(opening):
            return _read_list(reader, opening, closing)
    return _read_scalar(reader)


def _read_scalar(reader: TokenReader) -> Node:
    file = reader.file
    if reader.is_string():
        return text_node(file, reader.string(_VALUE))
    if reader.accept("-"):
        if not reader.is_number():
            raise reader.error("a number")
        number = reader.any()
        return number_node(file, number._replace(value=f"-{number.value}"))
    if reader.is_number():
        return number_node(file, reader.any())
    if reader.at("-"):
        return number_node(file, _read_negative(reader))
    if reader.accept("INTERVAL"):
        return text_node(file, read_interval(reader))
    return number_node(file, reader.name(_VALUE))


def _read_negative(reader: TokenReader) -> Text:
    sign = reader.any()
    if not reader.is_number():
        raise reader.error("a number")
    number = reader.any()
    return Text(f"-{number.value}", sign.start, number.end)


def read_interval(reader: TokenReader) -> Text:
    """Reads `'5 seconds'`, `'5' SECONDS` or `5 SECONDS`. Raises SpecError."""
    if not reader.is_string() and not reader.is_number():
        raise reader.error("an interval such as '5 seconds'")
    text = reader.any()
    if text.value.strip().replace(".", "", 1).isdecimal():
        unit = reader.name("a unit such as SECONDS")
        return Text(f"{text.value.strip()} {unit.value.lower()}", text.start, text.end)
    return text


def _read_list(reader: TokenReader, opening: str, closing: str) -> Node:
    reader.expect(opening)
    items = []
    while not reader.at(closing):
        items.append(_read_scalar(reader))
        if not reader.accept(","):
            break
    reader.expect(closing)
    return list_node(reader.file, items)
