"""Nodes upstream of a node, and their kinds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.plan.node import Node


def upstream(names: Iterable[str], nodes: Mapping[str, Node]) -> set[str]:
    """Returns all direct and indirect inputs of the named nodes."""
    ancestors: set[str] = set()
    pending = [input_ for name in names for input_ in nodes[name].inputs]
    while pending:
        name = pending.pop()
        if name not in ancestors:
            ancestors.add(name)
            pending.extend(nodes[name].inputs)
    return ancestors


def stream_sources(root: str, nodes: Mapping[str, Node], streams: frozenset[str]) -> list[str]:
    """Returns the sources that are streams upstream of a node, or the node itself."""
    above = (upstream([root], nodes) | {root}) & streams
    return sorted(name for name in above if nodes[name].kind == "source")


def follows_updating(node: Node, nodes: Mapping[str, Node]) -> bool:
    """Returns whether a node or a node upstream is updating."""
    return node.updating or any(nodes[name].updating for name in upstream([node.name], nodes))


def is_stream(name: str, nodes: Mapping[str, Node]) -> bool:
    above = (nodes[each] for each in upstream([name], nodes) | {name})
    return any(node.kind == "source" and not node.static for node in above)
