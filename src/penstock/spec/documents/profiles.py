"""Connections of the server: profiles that `penstock serve` keeps, as connections of a document.

The server passes the profiles that a pipeline may use in a variable of the environment, as JSON:

    {"base": "/pipelines", "profiles": {"shop": {"options": {...}, "secrets": {...}}, "hr": null}}

`secrets` is a map of the same structure as the options, which have them, too. A profile that the
pipeline may not use is null. Values have no expressions: `${NAME}` is text there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.core.known_secrets import remember_secret
from penstock.spec.tree.document import Document
from penstock.spec.tree.nodes import Entry, MappingNode, Node, ScalarNode, SequenceNode
from penstock.spec.yaml.parse import parse_document
from penstock.spec.yaml.writer import to_text

if TYPE_CHECKING:
    from penstock.spec.validate import Pipeline

VARIABLE = "PENSTOCK_CONNECTIONS"
FILE = "connection of the server: "
"""The beginning of the name of the file in locations of options of a profile."""


@dataclass(frozen=True)
class Profiles:
    """The profiles of an environment. `forbidden` are the names of those without permission."""

    base: Path
    known: Mapping[str, Mapping[str, Any]]
    forbidden: frozenset[str] = frozenset()

    @classmethod
    def of(cls, env: Mapping[str, str]) -> Profiles:
        """Returns the profiles of a variable of the environment, or none."""
        text = env.get(VARIABLE)
        if not text:
            return cls(Path(), {})
        found = json.loads(text)
        every = found["profiles"]
        known = {name: facts for name, facts in every.items() if facts is not None}
        return cls(Path(found["base"]), known, frozenset(every.keys() - known.keys()))

    def add_to(self, document: Document) -> Document:
        """Returns the document with the profiles that it names and does not define."""
        own = document.root.get("connections")
        if not self.known or not isinstance(own, MappingNode | None):
            return document
        defined = own.names() if own is not None else []
        names = sorted((set(_references(document.root)) & self.known.keys()) - set(defined))
        if not names:
            return document
        added = [entry for name in names for entry in self._entries(name)]
        return replace(document, root=_with_connections(document.root, added))

    def _entries(self, name: str) -> Sequence[Entry]:
        profile = self.known[name]
        text = to_text({name: profile["options"]})
        root = parse_document(text, f"{FILE}{name}", self.base).root
        secrets = profile["secrets"]
        return [Entry(entry.key, _concealed(entry.value, secrets)) for entry in root.entries]


NO_PROFILES = Profiles(Path(), {})


def used_profiles(pipeline: Pipeline) -> list[str]:
    """Returns the names of the connections of a pipeline that are profiles of the server."""
    key = pipeline.source_map.key
    names = pipeline.spec.connections
    return sorted(name for name in names if key(("connections", name)).file.startswith(FILE))


def _references(node: Node) -> Iterator[str]:
    """Yields the values of all options `connection`."""
    if isinstance(node, SequenceNode):
        for item in node.items:
            yield from _references(item)
    elif isinstance(node, MappingNode):
        for entry in node.entries:
            if entry.name == "connection" and isinstance(entry.value, ScalarNode):
                yield str(entry.value.value)
            else:
                yield from _references(entry.value)


def _concealed(node: Node, secrets: Any) -> Node:
    """Returns a value whose secrets are marked as such, and concealed from now on."""
    if isinstance(node, MappingNode) and isinstance(secrets, Mapping):
        entries = (
            Entry(entry.key, _concealed(entry.value, secrets[entry.name]))
            if entry.name in secrets
            else entry
            for entry in node.entries
        )
        return replace(node, entries=tuple(entries))
    if isinstance(node, SequenceNode):
        return replace(node, items=tuple(_concealed(item, secrets) for item in node.items))
    if isinstance(node, ScalarNode):
        remember_secret(node.text)
        return replace(node, secret=True, location=replace(node.location, text=""))
    return node


def _with_connections(root: MappingNode, added: Sequence[Entry]) -> MappingNode:
    own = root.entry("connections")
    if own is None:
        key = replace(added[0].key, value="connections", written="connections", text="connections")
        value: Node = MappingNode(tuple(added), added[0].key.location, root.base)
        return replace(root, entries=(*root.entries, Entry(key, value)))
    assert isinstance(own.value, MappingNode)
    value = replace(own.value, entries=(*own.value.entries, *added))
    entries = (Entry(each.key, value) if each is own else each for each in root.entries)
    return replace(root, entries=tuple(entries))
