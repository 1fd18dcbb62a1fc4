"""Connections: shared options as the defaults of the nodes that refer to them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.core.errors import PenstockError, SpecError
from penstock.core.text import did_you_mean
from penstock.spec.documents.profiles import NO_PROFILES, Profiles
from penstock.spec.parsed import MissingParts
from penstock.spec.tree.document import Document
from penstock.spec.tree.nodes import Entry, MappingNode, Node, ScalarNode, SequenceNode

_USERS = {"sources": "source", "sinks": "sink"}


def apply_connections(
    document: Document, profiles: Profiles = NO_PROFILES
) -> tuple[Document, list[PenstockError]]:
    """Returns the document with the options of connections in nodes, and the errors.

    `profiles` are the connections of the server, which the document may name.
    """
    errors: list[PenstockError] = []
    document = profiles.add_to(document)
    known = document.root.get("connections")
    connections = known if isinstance(known, MappingNode) else None
    context = _Context(connections, profiles, errors, document.missing)
    entries = []
    for entry in document.root.entries:
        value: Node = entry.value
        if entry.name in _USERS and isinstance(value, MappingNode):
            nodes = tuple(
                Entry(node.key, _with_all_defaults(node, context)) for node in value.entries
            )
            value = replace(value, entries=nodes)
        elif entry.name == "transforms" and isinstance(value, MappingNode):
            nodes = tuple(
                Entry(node.key, _with_storage_defaults(node, context)) for node in value.entries
            )
            value = replace(value, entries=nodes)
        elif entry.name == "dead_letter":
            value = _with_defaults(value, entry.name, context)
        entries.append(Entry(entry.key, value))
    root = replace(document.root, entries=tuple(entries))
    return replace(document, root=root), errors


@dataclass(frozen=True)
class _Context:
    """The known connections, and the errors so far."""

    connections: MappingNode | None
    profiles: Profiles
    errors: list[PenstockError]
    missing: MissingParts | None


def _with_all_defaults(
    entry: Entry,
    context: _Context,
) -> Node:
    """Returns a node with the options of its connection, and of the connections of its phases."""
    node = _with_defaults(entry.value, entry.name, context)
    phases = node.get("phases") if isinstance(node, MappingNode) else None
    if not isinstance(node, MappingNode) or not isinstance(phases, SequenceNode):
        return node
    items = tuple(_with_defaults(phase, entry.name, context) for phase in phases.items)
    entries = (
        Entry(each.key, replace(phases, items=items)) if each.name == "phases" else each
        for each in node.entries
    )
    return replace(node, entries=tuple(entries))


def _with_storage_defaults(
    entry: Entry,
    context: _Context,
) -> Node:
    """Returns a transform; of a dynamic table with the options of the connection of its storage."""
    node = entry.value
    type_ = node.get("type") if isinstance(node, MappingNode) else None
    if not isinstance(node, MappingNode) or getattr(type_, "value", None) != "dynamic_table":
        return node
    entries = (
        Entry(each.key, _with_defaults(each.value, entry.name, context))
        if each.name == "storage"
        else each
        for each in node.entries
    )
    return replace(node, entries=tuple(entries))


def _with_defaults(
    node: Node,
    name: str,
    context: _Context,
) -> Node:
    if not isinstance(node, MappingNode):
        return node
    reference = node.get("connection")
    if (
        not isinstance(reference, ScalarNode)
        or not isinstance(reference.value, str)
        or reference.invalid
    ):
        return node
    connections, missing = context.connections, context.missing
    connection = connections.entry(reference.value) if connections else None
    if connection is None:
        if reference.value in context.profiles.forbidden:
            context.errors.append(_forbidden(reference))
        elif missing is None or not missing.others:
            context.errors.append(_unknown(reference, context))
        return _with_invalid(node, reference)
    if not isinstance(connection.value, MappingNode):
        return node
    if error := _type_error(node, connection, name):
        context.errors.append(error)
        return _with_invalid(node, node.get("type"))
    defaults = (entry for entry in connection.value.entries if node.entry(entry.name) is None)
    return replace(node, entries=(*node.entries, *defaults))


def _with_invalid(node: MappingNode, invalid: Node | None) -> MappingNode:
    """Returns the node with one of its values marked as invalid."""
    entries = (
        Entry(entry.key, replace(entry.value, invalid=True))
        if entry.value is invalid and isinstance(entry.value, ScalarNode)
        else entry
        for entry in node.entries
    )
    return replace(node, entries=tuple(entries))


def _forbidden(reference: ScalarNode) -> SpecError:
    return SpecError(
        f'the connection "{reference.value}" of the server is not permitted here',
        code="forbidden-connection",
        where=reference.location,
        hint="ask a user with the right admin to permit it to you and to this pipeline",
    )


def _unknown(reference: ScalarNode, context: _Context) -> SpecError:
    known = [*(context.connections.names() if context.connections else ()), *context.profiles.known]
    return SpecError(
        f'unknown connection "{reference.value}"',
        code="unknown-connection",
        where=reference.location,
        hint=did_you_mean(str(reference.value), known) or 'add "connections:"',
    )


def _type_error(node: MappingNode, connection: Entry, name: str) -> SpecError | None:
    assert isinstance(connection.value, MappingNode)
    type_, shared = node.get("type"), connection.value.get("type")
    if not isinstance(type_, ScalarNode) or not isinstance(shared, ScalarNode):
        return None
    if type_.value == shared.value:
        return None
    return SpecError(
        f'expected type {shared.value} of connection "{connection.name}" for "{name}", '
        f"found {type_.value}",
        code="connection-type",
        where=type_.location,
        hint=f"remove the type; the type of the connection is at {shared.location}",
    )
