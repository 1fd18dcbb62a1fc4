"""Merging of a file with its includes: maps are merged, duplicate names are errors."""

from __future__ import annotations

from collections.abc import Sequence as List
from dataclasses import replace

from penstock.core.errors import PenstockError
from penstock.spec.parsed import combine
from penstock.spec.tree.document import Document, duplicate_key_error
from penstock.spec.tree.nodes import Entry, MappingNode, ScalarNode, SequenceNode

NAMED = {
    "sources": "source",
    "transforms": "transform",
    "sinks": "sink",
    "connections": "connection",
    "functions": "function",
    "side_outputs": "side output",
}
_DEEP = {"runtime"}
LISTS = {"tests", "function_files", "plugins"}


def merge_documents(documents: List[Document]) -> tuple[Document, list[PenstockError]]:
    """Returns one document of a file and its includes, and the errors of duplicates."""
    errors: list[PenstockError] = [each for document in documents for each in document.errors]
    entries: dict[str, Entry] = {}
    for document in documents:
        for entry in document.root.entries:
            if entry.name == "include":
                continue
            known = entries.get(entry.name)
            entries[entry.name] = _merge_entries(known, entry, errors) if known else entry
    root = replace(documents[0].root, entries=tuple(entries.values()))
    files = tuple(name for document in documents for name in document.files)
    warnings = tuple(each for document in documents for each in document.warnings)
    replacements = tuple(each for document in documents for each in document.replacements)
    missing = combine(document.missing for document in documents)
    return Document(root, files, warnings, replacements, missing=missing), errors


def _merge_entries(first: Entry, second: Entry, errors: list[PenstockError]) -> Entry:
    left, right = first.value, second.value
    if is_empty(left) or is_empty(right):
        return second if is_empty(left) else first
    if isinstance(left, MappingNode) and isinstance(right, MappingNode) and first.name in NAMED:
        noun = NAMED[first.name]
        return Entry(first.key, _merge_maps(left, right, errors, noun, deep=False))
    if isinstance(left, MappingNode) and isinstance(right, MappingNode) and first.name in _DEEP:
        return Entry(first.key, _merge_maps(left, right, errors, "option", deep=True))
    if isinstance(left, SequenceNode) and isinstance(right, SequenceNode) and first.name in LISTS:
        return Entry(first.key, replace(left, items=(*left.items, *right.items)))
    errors.append(duplicate_key_error(first.key, second.key))
    return first


def _merge_maps(
    first: MappingNode, second: MappingNode, errors: list[PenstockError], noun: str, *, deep: bool
) -> MappingNode:
    entries = {entry.name: entry for entry in first.entries}
    for entry in second.entries:
        known = entries.get(entry.name)
        if known is None:
            entries[entry.name] = entry
        elif deep and isinstance(known.value, MappingNode) and isinstance(entry.value, MappingNode):
            merged = _merge_maps(known.value, entry.value, errors, noun, deep=True)
            entries[entry.name] = Entry(known.key, merged)
        else:
            errors.append(duplicate_key_error(known.key, entry.key, noun))
    return replace(first, entries=tuple(entries.values()))


def is_empty(node: object) -> bool:
    """Returns whether a value is left out, as of `sinks:`."""
    return isinstance(node, ScalarNode) and node.plain and not node.written
