"""Trees of Penstock made of the values of a file of another tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.core.location import Location
from penstock.spec.tree.nodes import Entry, MappingNode, Node, ScalarNode, SequenceNode

Tree = Mapping[str, Any] | Sequence[Any] | Node | str | int | float | bool | None
"""Plain data, whose values may be nodes of the file."""


def to_node(value: Tree, at: Node, where: Location | None = None) -> Node:
    """Returns data as nodes at the place of a node, except for nodes of the file within it."""
    place = where or at.location
    if isinstance(value, ScalarNode | MappingNode | SequenceNode):
        return value
    if isinstance(value, Mapping):
        entries = tuple(
            Entry(_scalar(name, at, place), to_node(each, at, place))
            for name, each in value.items()
            if each is not None
        )
        return MappingNode(entries, place, at.base)
    if isinstance(value, list | tuple):
        return SequenceNode(tuple(to_node(each, at, place) for each in value), place, at.base)
    assert value is None or isinstance(value, str | int | float | bool)
    return _scalar(value, at, place)


def _scalar(value: str | int | float | bool | None, at: Node, where: Location) -> ScalarNode:
    text = value if isinstance(value, str) else str(value)
    return ScalarNode(value, text, text, where, at.base, False)
