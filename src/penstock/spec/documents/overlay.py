"""Overlays: files whose options replace those of the files before them."""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Sequence as List
from dataclasses import replace

from penstock.core.errors import PenstockError
from penstock.spec.documents.merge import LISTS, NAMED, is_empty, merge_documents
from penstock.spec.front_end import document_front_end
from penstock.spec.parsed import Replacement, combine
from penstock.spec.source_map import Route
from penstock.spec.tree.document import Document, duplicate_key_error
from penstock.spec.tree.nodes import Entry, MappingNode, Node, SequenceNode


def merge_files(files: List[List[Document]]) -> tuple[Document, list[PenstockError]]:
    """Returns one document of the files of a command line, each with its includes, and errors.

    An option of a later file replaces that of an earlier file, if its language replaces options.
    The includes of a file replace nothing.
    """
    merged, errors = merge_documents(files[0])
    for file in files[1:]:
        if document_front_end(file[0].files[0]).replaces_options:
            overlay, more = merge_documents(file)
            merged = _apply(merged, overlay, more)
        else:
            merged, more = merge_documents([merged, *file])
        errors += more
    return merged, errors


def without_entries(document: Document, names: Collection[str]) -> Document:
    """Returns the document without the sections, and without the nodes, of these names."""
    entries = []
    for entry in document.root.entries:
        value = entry.value
        if entry.name in NAMED and isinstance(value, MappingNode):
            kept = tuple(each for each in value.entries if each.name not in names)
            value = replace(value, entries=kept)
        if entry.name not in names:
            entries.append(replace(entry, value=value))
    return replace(document, root=replace(document.root, entries=tuple(entries)))


def _apply(base: Document, overlay: Document, errors: list[PenstockError]) -> Document:
    replaced: list[Replacement] = []
    root = _overlaid(base.root, overlay.root, (), replaced, errors)
    return Document(
        root,
        (*base.files, *overlay.files),
        (*base.warnings, *overlay.warnings),
        (*base.replacements, *replaced),
        missing=combine((base.missing, overlay.missing)),
    )


def _overlaid(
    base: MappingNode,
    overlay: MappingNode,
    route: Route,
    replaced: list[Replacement],
    errors: list[PenstockError],
) -> MappingNode:
    entries = {entry.name: entry for entry in base.entries}
    for entry in overlay.entries:
        known = entries.get(entry.name)
        place = (*route, entry.name)
        if known is None or (not route and is_empty(known.value)):
            entries[entry.name] = entry
        elif not route and is_empty(entry.value):
            continue
        elif place == ("name",):
            errors.append(duplicate_key_error(known.key, entry.key))
        elif (
            isinstance(known.value, SequenceNode)
            and isinstance(entry.value, SequenceNode)
            and (not route and entry.name in LISTS)
        ):
            items = (*known.value.items, *entry.value.items)
            entries[entry.name] = Entry(known.key, replace(known.value, items=items))
        elif (
            isinstance(known.value, MappingNode)
            and isinstance(entry.value, MappingNode)
            and not _has_another_type(known.value, entry.value)
        ):
            value = _overlaid(known.value, entry.value, place, replaced, errors)
            entries[entry.name] = Entry(known.key, value)
        else:
            entries[entry.name] = entry
            replaced.append(Replacement(place, entry.key.location, known.key.location))
    return replace(base, entries=tuple(entries.values()))


def _has_another_type(base: MappingNode, overlay: MappingNode) -> bool:
    """Returns whether the maps are of components with different options."""
    first, second = _type(base), _type(overlay)
    return first is not None and second is not None and first != second


def _type(node: MappingNode) -> object:
    value: Node | None = node.get("type")
    return None if value is None else value.data()
