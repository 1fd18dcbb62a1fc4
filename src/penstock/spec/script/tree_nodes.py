"""Nodes of a document, with locations in a script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.core.location import Location
from penstock.spec.script.tokens import Text
from penstock.spec.tree import scalars
from penstock.spec.tree.nodes import (
    Entry,
    File,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    Span,
)
from penstock.sql.text.edits import Translation


def text_node(file: File, text: Text) -> ScalarNode:
    """Returns a text of the script."""
    location, span = file.location(text.start, text.end), Span(file, text.start, text.end)
    return ScalarNode(text.value, text.value, text.value, location, file.base, False, span)


def type_node(file: File, type_: Text) -> ScalarNode:
    """Returns a type, which may be translated and have further words at its end."""
    is_written = type_.value.startswith(file.text[type_.start : type_.end])
    return text_node(file, type_) if is_written else derived_node(file, type_.value, type_)


def query_node(file: File, text: Text, edited: Translation, place: Text) -> ScalarNode:
    """Returns an edited query. `text` has the length of its part of the script.

    `place` is the part of the script that the query is from.
    """
    location = file.location(place.start, place.end)
    value = edited.text
    indexes = tuple(text.start + edited.origin(index) for index in range(len(value) + 1))
    span = Span(file, place.start, place.end, indexes=indexes)
    return ScalarNode(value, value, value, location, file.base, False, span)


def number_node(file: File, text: Text) -> ScalarNode:
    """Returns a number, true, false or a bare word of the script."""
    location = file.location(text.start, text.end)
    value = scalars.resolve(text.value)
    return ScalarNode(value, text.value, text.value, location, file.base)


def derived_node(file: File, value: str | bool, origin: Text) -> ScalarNode:
    """Returns a value that is not in the script itself, at the location of its origin."""
    location = file.location(origin.start, origin.end)
    return ScalarNode(value, str(value), str(value), location, file.base, False)


def list_node(file: File, items: Sequence[Node]) -> SequenceNode:
    """Returns a list."""
    where = items[0].location if items else Location(file.name, 1, 1)
    return SequenceNode(tuple(items), where, file.base)


def names_node(file: File, names: Sequence[Text]) -> SequenceNode:
    """Returns a list of names."""
    return list_node(file, [derived_node(file, name.value, name) for name in names])


def map_node(file: File, values: Mapping[Text, Node]) -> MappingNode:
    """Returns a map. The location of a key is the location of its text."""
    entries = tuple(Entry(text_node(file, key), value) for key, value in values.items())
    where = entries[0].key.location if entries else Location(file.name, 1, 1)
    return MappingNode(entries, where, file.base)


def key(name: str) -> Text:
    """Returns a key that is not in the script itself."""
    return Text(name, 0, 0)
