"""Definitions of nodes, and the symbols of a file."""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.language.document import Document
from penstock.language.model import Position, Range, Symbol, SymbolKind, Target
from penstock.language.reading import Reading
from penstock.language.yaml_entry import Entry
from penstock.language.yaml_place import place_at

_KINDS: dict[str, SymbolKind] = {
    "sources": "source", "transforms": "transform", "sinks": "sink", "functions": "function",
}  # fmt: skip
_NAME = re.compile(r"[\w.]+")
_FILE_KEYS = ("include", "function_files", "plugins")


def definition(reading: Reading, index: int) -> Target | None:
    """Returns the place where the node, the connection or the file at an index is defined."""
    document = reading.document
    word = word_at(document, index)
    if word is None:
        return None
    name, _, _ = word
    if reading.language != "sql" and (target := _in_yaml(reading, index, name)):
        return target
    found = reading.relations.find(name) or reading.relations.find(name.partition(".")[0])
    if found is None:
        return None
    if found.end > found.start:
        return Target(str(document.path), document.range(found.start, found.end))
    files = (file for known, _, _, file in reading.planned.nodes if known == found.name)
    start = Range(Position(1, 1), Position(1, 1))
    return next((Target(file, start) for file in files), None)


def word_at(document: Document, index: int) -> tuple[str, int, int] | None:
    """Returns the name at an index with its start and end; None for another text."""
    line = document.position(index).line - 1
    start = document.starts[line]
    for match in _NAME.finditer(document.line(line)):
        if match.start() <= index - start <= match.end():
            return match[0], start + match.start(), start + match.end()
    return None


def _in_yaml(reading: Reading, index: int, name: str) -> Target | None:
    """Returns the place of a connection or of a file that an option names."""
    document, root = reading.document, reading.root
    place = place_at(document, root, index)
    if place is None or place.is_key:
        return None
    option = place.holder.parent if isinstance(place.holder.step, int) else place.holder
    if option is None or place.holder.value is None:
        return None
    if option.step == "connection" and (holder := root.child("connections")):
        found = holder.child(name)
        if found is not None:
            return Target(str(document.path), document.range(found.key_start, found.key_end))
    if option.route in [(key,) for key in _FILE_KEYS]:
        file = document.path.parent / place.holder.value
        if file.is_file():
            return Target(str(file), Range(Position(1, 1), Position(1, 1)))
    return None


def symbols(reading: Reading) -> tuple[Symbol, ...]:
    """Returns the symbols of a file: its sections with their nodes, or its statements."""
    if reading.language == "sql":
        return tuple(_of_script(reading))
    return tuple(_of_section(reading.document, each) for each in reading.root.children)


def _of_section(document: Document, entry: Entry) -> Symbol:
    kind = _KINDS.get(str(entry.step))
    children = (
        _symbol(document, each, kind, each.text_of("type") or "")
        for each in entry.children
        if kind is not None and isinstance(each.step, str)
    )
    return _symbol(document, entry, "section", entry.value or "", tuple(children))


def _symbol(
    document: Document, entry: Entry, kind: SymbolKind, detail: str,
    children: tuple[Symbol, ...] = (),
) -> Symbol:  # fmt: skip
    text = document.text[: max(entry.end, entry.value_end, entry.key_end)]
    end = max(len(text.rstrip()), entry.key_end)
    return Symbol(
        str(entry.step) or "-", kind, document.range(entry.key_start, end),
        document.range(entry.key_start, entry.key_end), detail, children,
    )  # fmt: skip


def _of_script(reading: Reading) -> Iterator[Symbol]:
    document = reading.document
    kinds: dict[str, SymbolKind] = {node.name: node.kind for node in reading.nodes}
    for each in reading.statements:
        written = document.text[each.start : each.end]
        if not written.strip():
            continue
        start = each.start + len(written) - len(written.lstrip())
        whole = document.range(start, each.start + len(written.rstrip()))
        if not each.name:
            first = written.split(maxsplit=1)[0]
            span = document.range(start, start + len(first))
            yield Symbol(first.upper(), "setting" if each.kind == "set" else "node", whole, span)
            continue
        kind = "function" if each.kind == "function" else kinds.get(each.name, "node")
        detail = each.option("connector") or each.kind
        label = f"INSERT INTO {each.name}" if each.kind == "insert" else each.name
        yield Symbol(label, kind, whole, document.range(*each.name_span), detail)
