"""Corrections of errors, from the names and instructions in their hints."""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.core.errors import PenstockError
from penstock.language.document import Document
from penstock.language.model import Edit, Fix, Position, Range
from penstock.language.yaml_entry import Entry
from penstock.language.yaml_outline import read_outline

_NAMES = re.compile(r"did you mean (?P<names>\"[^\"]+\"(?:, or \"[^\"]+\")*)\?", re.IGNORECASE)
_INSTEAD = re.compile(r"write \"(?P<name>[^\"]+)\" instead(?: of \"[^\"]+\")?", re.IGNORECASE)
_QUOTE = re.compile(r"put the (?:value|text) in quotes", re.IGNORECASE)
_INDENT = re.compile(r"indent the key below \"[^\"]+\"")
_NEEDS = re.compile(r" needs \"(?P<name>[^\"]+)\"\Z")


def fixes_of(error: PenstockError, document: Document) -> tuple[Fix, ...]:
    """Returns the fixes of an error, the most likely one first. `document` is its file."""
    if error.where is None:
        return ()
    return tuple(_fixes(error, document))


def _fixes(error: PenstockError, document: Document) -> Iterator[Fix]:
    hint, marked = error.hint or "", _marked(error, document)
    if match := _NAMES.search(hint):
        for name in re.findall(r"\"([^\"]+)\"", match["names"]):
            yield _replace(document, marked, name)
    elif match := _INSTEAD.search(hint):
        yield _replace(document, marked, match["name"])
    elif _QUOTE.match(hint) and "\n" not in document.slice(marked):
        text = document.slice(marked)
        quoted = "'" + text.replace("'", "''") + "'" if '"' in text or "\\" in text else f'"{text}"'
        yield Fix(f"Write {quoted}", (Edit(marked, quoted),))
    elif _INDENT.match(hint):
        yield from _indent(error, document)
    if match := _NEEDS.search(error.message):
        yield from _add_option(document, marked, match["name"])


def _marked(error: PenstockError, document: Document) -> Range:
    """Returns the marked part of the text."""
    where = error.where
    assert where is not None
    start = document.index(Position(where.line, where.column))
    return document.range(start, min(start + where.length, len(document.text)))


def _replace(document: Document, marked: Range, name: str) -> Fix:
    """Returns the replacement of a marked name, which keeps its quotation marks."""
    text = document.slice(marked)
    quote = text[:1] if text[:1] in "\"'`" and text[-1:] == text[:1] and len(text) > 1 else ""
    return Fix(f"Change to {name}", (Edit(marked, f"{quote}{name}{quote}"),))


def _indent(error: PenstockError, document: Document) -> Iterator[Fix]:
    """Yields the indentation of the lines of a key."""
    found = _entry_at(error, document)
    if found is None:
        return
    first, last = document.position(found.key_start).line, document.position(found.end - 1).line
    edits = [
        Edit(Range(Position(line, 1), Position(line, 1)), "  ")
        for line in range(first, last + 1)
        if document.line(line - 1).strip()
    ]
    yield Fix(f"Indent {found.step}", tuple(edits))


def _add_option(document: Document, marked: Range, name: str) -> Iterator[Fix]:
    """Yields the insertion of a key into the map of a marked key."""
    if document.path.suffix == ".sql":
        return
    start = document.index(marked.start)
    entry = next((e for e in read_outline(document).walk() if e.key_start == start), None)
    if entry is None or entry.is_flow or entry.value is not None:
        return
    indent = entry.children[0].indent if entry.children else max(entry.indent, 0) + 2
    line = document.position(entry.key_start).line
    end = Position(line, len(document.line(line - 1)) + 1)
    yield Fix(f"Add {name}", (Edit(Range(end, end), f"\n{' ' * indent}{name}: "),))


def _entry_at(error: PenstockError, document: Document) -> Entry | None:
    start = document.index(_marked(error, document).start)
    return next((e for e in read_outline(document).walk() if e.key_start == start), None)
