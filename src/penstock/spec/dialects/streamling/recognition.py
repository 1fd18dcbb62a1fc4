"""Recognition of files of Streamling by words that only they have."""

from __future__ import annotations

from penstock.spec.dialects.streamling.sinks import SINKS
from penstock.spec.dialects.streamling.sources import SOURCES
from penstock.spec.dialects.streamling.transforms import TRANSFORMS
from penstock.spec.dialects.streamling.words import CONNECTED, OPTIONS, TYPES
from penstock.spec.tree.nodes import MappingNode, Node, ScalarNode

_KNOWN = (SOURCES, TRANSFORMS, SINKS)


def is_streamling(root: MappingNode) -> bool:
    """Returns whether a node of the file has a type or an option that only Streamling has."""
    inner = root.get("definition")
    if isinstance(inner, MappingNode):
        root = inner
    if any(_is_own(node) for node in _nodes(root)):
        return True
    return root.get("transforms") is not None and _lacks_connections(root)


def is_ambiguous(root: MappingNode) -> bool:
    """Returns whether each node could be one of Penstock too, of plugins with dots in names."""
    return not any(_is_certain(node) for node in _nodes(root)) and not _lacks_connections(root)


def _nodes(root: MappingNode) -> list[MappingNode]:
    sections = [root.get(name) for name in ("sources", "transforms", "sinks")]
    return [
        entry.value
        for section in sections if isinstance(section, MappingNode)
        for entry in section.entries if isinstance(entry.value, MappingNode)
    ]  # fmt: skip


def _is_own(node: MappingNode) -> bool:
    return _is_certain(node) or (
        "." in _type(node) and isinstance(node.get("options"), MappingNode)
    )


def _is_certain(node: MappingNode) -> bool:
    type_ = _type(node)
    if type_ in TYPES or any(node.get(option) is not None for option in OPTIONS):
        return True
    return type_ == "script" and node.get("script") is not None


def _lacks_connections(root: MappingNode) -> bool:
    """Returns whether a node has no connection, which the settings of Streamling have.

    All nodes have options of Streamling only, and all queries a primary key: the connection is not
    in another file of Penstock.
    """
    nodes = _nodes(root)
    for node in nodes:
        options = [known[_type(node)] for known in _KNOWN if _type(node) in known]
        names = {name for each in options for name in each.names}
        if options and not {*node.names()} <= names:
            return False
        if _type(node) == "sql" and node.get("primary_key") is None:
            return False
    return any(
        _type(node) in CONNECTED and node.get(CONNECTED[_type(node)]) is None for node in nodes
    )


def _type(node: MappingNode) -> str:
    value: Node | None = node.get("type")
    return value.written.strip() if isinstance(value, ScalarNode) else ""
