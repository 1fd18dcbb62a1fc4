"""`connection: prod`: the options of a connection as defaults of the nodes that use it."""

from __future__ import annotations

from dataclasses import replace

from penstock.core.errors import PenstockError, SpecError
from penstock.core.text import did_you_mean
from penstock.spec.document import Document
from penstock.spec.nodes import Entry, Mapping, Node, Scalar

_USERS = {"sources": "source", "sinks": "sink"}


def apply_connections(document: Document) -> tuple[Document, list[PenstockError]]:
    """The document with each connection's options in its users, and unknown connections."""
    mistakes: list[PenstockError] = []
    known = document.root.get("connections")
    connections = known if isinstance(known, Mapping) else None
    entries = []
    for entry in document.root.entries:
        value: Node = entry.value
        if entry.name in _USERS and isinstance(value, Mapping):
            nodes = tuple(
                Entry(each.key, _joined(each.value, each.name, connections, mistakes))
                for each in value.entries
            )
            value = replace(value, entries=nodes)
        elif entry.name == "dead_letter":
            value = _joined(value, entry.name, connections, mistakes)
        entries.append(Entry(entry.key, value))
    return Document(replace(document.root, entries=tuple(entries)), document.files), mistakes


def _joined(
    node: Node, name: str, connections: Mapping | None, mistakes: list[PenstockError]
) -> Node:
    if not isinstance(node, Mapping):
        return node
    wanted = node.get("connection")
    if not isinstance(wanted, Scalar) or not isinstance(wanted.value, str) or wanted.broken:
        return node
    connection = connections.entry(wanted.value) if connections else None
    if connection is None:
        mistakes.append(_unknown(wanted, connections))
        entries = (
            Entry(each.key, replace(wanted, broken=True)) if each.value is wanted else each
            for each in node.entries
        )
        return replace(node, entries=tuple(entries))
    if not isinstance(connection.value, Mapping):
        return node
    if wrong := _other_type(node, connection, name):
        mistakes.append(wrong)
    defaults = (each for each in connection.value.entries if node.entry(each.name) is None)
    return replace(node, entries=(*node.entries, *defaults))


def _unknown(wanted: Scalar, connections: Mapping | None) -> SpecError:
    known = connections.names() if connections else []
    return SpecError(
        f'there is no connection "{wanted.value}"',
        code="unknown-connection",
        where=wanted.location,
        hint=did_you_mean(str(wanted.value), known) or 'the file has no "connections"',
    )


def _other_type(node: Mapping, connection: Entry, name: str) -> SpecError | None:
    assert isinstance(connection.value, Mapping)
    ours, theirs = node.get("type"), connection.value.get("type")
    if not isinstance(ours, Scalar) or not isinstance(theirs, Scalar):
        return None
    if ours.value == theirs.value:
        return None
    return SpecError(
        f'"{name}" is of type {ours.value}, and its connection "{connection.name}" '
        f"of type {theirs.value}",
        code="connection-type",
        where=ours.location,
        hint=f"the connection's type stands at {theirs.location}",
    )
