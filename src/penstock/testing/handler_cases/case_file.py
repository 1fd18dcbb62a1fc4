"""Files with cases of handlers.

A file is an object with the list `cases`, or the list itself. A case has a title, the name of its
handler, options as `NAME=VALUE;NAME=VALUE`, and calls. A call is a list of batches, or of texts
(`{"text": ...}`) for the parsers `graphite` and `csv`; `{"from": "TITLE output"}` is the output of
an earlier case.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.core.errors import PenstockError, SpecError, UserError
from penstock.core.location import Location
from penstock.core.text import did_you_mean
from penstock.testing.handler_cases.columns import check_keys, expect, read_batch, unknown_keys
from penstock.testing.handler_cases.handlers import Create, handler_of
from penstock.testing.handler_cases.parsers import PARSERS, CreateParser, parser_of
from penstock.testing.handler_cases.place import Place, location

CASE_KEYS = (
    "title",
    "note",
    "handler",
    "options",
    "calls",
    "status",
    "exit",
    "outputs",
    "rejected",
)
FILE_KEYS = ("note", "cases")


@dataclass(frozen=True)
class Reference:
    """The output of an earlier case."""

    title: str


Item = Any
"""A record batch, a text or a reference."""


@dataclass(frozen=True)
class HandlerCase:
    """A case: the constructor of a handler or of a parser, and its calls."""

    document: dict[str, Any]
    title: str
    create: Create | None
    parser: CreateParser | None
    calls: list[list[Item]]
    errors: Sequence[PenstockError] = ()
    """The errors of keys without a meaning."""


@dataclass(frozen=True)
class InvalidCase:
    """A case that cannot be run, with its errors."""

    document: Any
    errors: Sequence[PenstockError]


@dataclass(frozen=True)
class CaseFile:
    """The cases of a file in order, and its note."""

    note: str | None
    cases: list[HandlerCase | InvalidCase]


def read_cases(path: str) -> CaseFile:
    """Returns the cases of a file. Raises UserError if it is not a file of cases."""
    try:
        text = Path(path).read_text("utf-8")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", code="unreadable-file") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8", code="not-utf8") from None
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        where = location(path, text, error.pos, error.pos + 1)
        raise SpecError(f"invalid JSON: {error.msg}", code="not-json", where=where) from None
    except RecursionError:
        where = Location(path, 1, 1)
        raise SpecError("the JSON is nested too deeply", code="not-json", where=where) from None
    place = Place(path, text)
    note, cases = None, document
    if isinstance(document, dict):
        check_keys(document, FILE_KEYS, place)
        if "cases" not in document:
            raise place.error('the key "cases" is missing', code="missing-option")
        note, cases, place = document.get("note"), document["cases"], place.at("cases")
    expect(cases, list, "a list of cases", place)
    titles: set[str] = set()
    return CaseFile(note, [_case(each, place.at(i), titles) for i, each in enumerate(cases)])


def _case(value: Any, place: Place, titles: set[str]) -> HandlerCase | InvalidCase:
    """Returns a case, and adds its title to those of the earlier ones."""
    errors = list[PenstockError]()
    try:
        expect(value, dict, "a case", place)
        errors += unknown_keys(value, CASE_KEYS, place)
        for key in ("handler", "calls"):
            if key not in value:
                raise place.error(f'the key "{key}" is missing', code="missing-option")
        title = expect(value.get("title", ""), str, "a text", place.at("title"))
        words = expect(value["handler"], str, "the name of a handler", place.at("handler"))
        options = value.get("options")
        options = "" if options is None else expect(options, str, "a text", place.at("options"))
        create = parser = None
        if words in PARSERS:
            parser = parser_of(words, options, place)
        else:
            create = handler_of(words, options, place)
        calls = expect(value["calls"], list, "a list of calls", place.at("calls"))
        found = [
            _call(call, parser is not None, place.at("calls", i), titles)
            for i, call in enumerate(calls)
        ]
        titles.add(title)
        return HandlerCase(value, title, create, parser, found, errors)
    except PenstockError as error:
        return InvalidCase(value, [*errors, error])


def _call(value: Any, has_texts: bool, place: Place, titles: set[str]) -> list[Item]:
    items = expect(value, list, "a list of batches", place)
    return [_item(each, has_texts, place.at(i), titles) for i, each in enumerate(items)]


def _item(value: Any, has_texts: bool, place: Place, titles: set[str]) -> Item:
    expect(value, dict, "a batch", place)
    if has_texts:
        check_keys(value, ("text",), place)
        text: str = expect(value.get("text"), str, "a text", place.at(*value))
        return text
    if "from" not in value:
        return read_batch(value, place)
    check_keys(value, ("from",), place)
    name = expect(value["from"], str, "the title of a case", place.at("from"))
    title = name if name in titles else name.removesuffix(" output")
    if title not in titles:
        hint = did_you_mean(title, titles)
        raise place.at("from").error(
            f'there is no earlier case "{title}"', code="unknown-case", hint=hint
        )
    return Reference(title)
