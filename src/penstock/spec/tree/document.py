"""The document of a pipeline: its tree of nodes, and their locations in the files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penstock.core.errors import SpecError
from penstock.core.location import Location
from penstock.spec.parsed import MissingParts, Replacement
from penstock.spec.source_map import Route, SourceValue
from penstock.spec.tree.nodes import MappingNode, Node, ScalarNode, child, to_source_value

DUPLICATE_KEY = "duplicate-key"


@dataclass(frozen=True, eq=False)
class Document:
    """The tree of one pipeline, possibly of several files; the source map of a YAML pipeline."""

    root: MappingNode
    files: tuple[str, ...]
    """The files of the tree in order."""
    warnings: tuple[SpecError, ...] = ()
    """Likely errors that do not prevent a run."""
    replacements: tuple[Replacement, ...] = ()
    """The options that a file replaces in an earlier file."""
    errors: tuple[SpecError, ...] = ()
    """The errors of keys that a file has twice, of which the tree has the first one, and of entries
    and statements that are not in the tree."""
    missing: MissingParts | None = None
    """The parts of the files that are not in the tree; None if all are."""

    def find(self, route: Route) -> SourceValue | None:
        """Returns the value at `route`, or None if there is none."""
        node = self.node(route)
        return None if node is None else to_source_value(node)

    def node(self, route: Route) -> Node | None:
        """Returns the node at `route`, or None if there is none."""
        node: Node | None = self.root
        for step in route:
            node = child(node, step) if node is not None else None
        return node

    def require_node(self, route: Route) -> Node:
        """Returns the node at `route`. Raises KeyError."""
        node = self.node(route)
        if node is None:
            raise KeyError(".".join(map(str, route)))
        return node

    def key(self, route: Route) -> Location:
        """Returns the location of the key at the end of `route`; see `SourceMap.key`."""
        for end in range(len(route), 0, -1):
            above, step = self.node(route[: end - 1]), route[end - 1]
            if isinstance(above, MappingNode) and (entry := above.entry(str(step))):
                return entry.key.location
            if above is not None and (item := child(above, step)):
                return item.location
        return Location(self.files[0], 1, 1)

    def value(self, route: Route) -> Location:
        """Returns the location of the value; of its key if the value is empty or begins below."""
        node = self.node(route)
        if isinstance(node, ScalarNode):
            return node.location if node.written else self.key(route)
        if node is not None and node.flow:
            return node.location
        return self.key(route)

    def inside(self, route: Route, line: int, column: int, length: int = 1) -> Location:
        """Returns the location of a line and column, both from 1, of the text at `route`."""
        node = self.node(route)
        if isinstance(node, ScalarNode):
            return node.locate(line, column, length)
        return self.value(route)

    def base(self, route: Route) -> Path:
        """Returns the directory of the value's file; of the first file by default."""
        node = self.node(route)
        return self.root.base if node is None else node.base

    def names(self, section: str) -> list[str]:
        """Returns the names in a top-level map such as `sources`."""
        node = self.root.get(section)
        return node.names() if isinstance(node, MappingNode) else []


def duplicate_key_error(first: ScalarNode, second: ScalarNode, noun: str = "key") -> SpecError:
    """Returns the error of a duplicate key, with both locations."""
    return SpecError(
        f'duplicate {noun} "{second.written}"',
        code=DUPLICATE_KEY,
        where=second.location,
        hint=f"remove one of the keys; the first is at {first.location}",
    )
