"""Several files to one tree: maps are merged, and a name twice is a mistake."""

from __future__ import annotations

from collections.abc import Sequence as List
from dataclasses import replace

from penstock.core.errors import PenstockError
from penstock.spec.compose import doubled
from penstock.spec.document import Document
from penstock.spec.nodes import Entry, Mapping, Scalar, Sequence

_NAMED = {
    "sources": "source",
    "transforms": "transform",
    "sinks": "sink",
    "connections": "connection",
}
_DEEP = {"runtime"}
_LISTS = {"tests"}


def merge(documents: List[Document]) -> tuple[Document, list[PenstockError]]:
    """The documents as one, without their `include`, and what is in two of them."""
    mistakes: list[PenstockError] = []
    entries: dict[str, Entry] = {}
    for document in documents:
        for entry in document.root.entries:
            if entry.name == "include":
                continue
            known = entries.get(entry.name)
            entries[entry.name] = _together(known, entry, mistakes) if known else entry
    root = replace(documents[0].root, entries=tuple(entries.values()))
    files = tuple(name for document in documents for name in document.files)
    return Document(root, files), mistakes


def _together(first: Entry, second: Entry, mistakes: list[PenstockError]) -> Entry:
    a, b = first.value, second.value
    if _empty(a) or _empty(b):
        return second if _empty(a) else first
    if isinstance(a, Mapping) and isinstance(b, Mapping) and first.name in _NAMED:
        return Entry(first.key, _maps(a, b, mistakes, _NAMED[first.name], deep=False))
    if isinstance(a, Mapping) and isinstance(b, Mapping) and first.name in _DEEP:
        return Entry(first.key, _maps(a, b, mistakes, "option", deep=True))
    if isinstance(a, Sequence) and isinstance(b, Sequence) and first.name in _LISTS:
        return Entry(first.key, replace(a, items=(*a.items, *b.items)))
    mistakes.append(doubled(first.key, second.key))
    return first


def _maps(
    first: Mapping, second: Mapping, mistakes: list[PenstockError], what: str, *, deep: bool
) -> Mapping:
    entries = {entry.name: entry for entry in first.entries}
    for entry in second.entries:
        known = entries.get(entry.name)
        if known is None:
            entries[entry.name] = entry
        elif deep and isinstance(known.value, Mapping) and isinstance(entry.value, Mapping):
            both = _maps(known.value, entry.value, mistakes, what, deep=True)
            entries[entry.name] = Entry(known.key, both)
        else:
            mistakes.append(doubled(known.key, entry.key, what))
    return replace(first, entries=tuple(entries.values()))


def _empty(node: object) -> bool:
    return isinstance(node, Scalar) and node.plain and not node.written
