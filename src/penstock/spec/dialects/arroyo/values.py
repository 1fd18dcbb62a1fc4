"""Values of options of Arroyo as nodes, at their places in the script.

A placeholder `{{ NAME }}` becomes the expression `${env:NAME}` of Penstock.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from penstock.spec.dialects.arroyo.option_rules import Value
from penstock.spec.script.options import Option
from penstock.spec.script.tokens import Text
from penstock.spec.script.tree_nodes import derived_node, list_node, map_node
from penstock.spec.tree.nodes import File, Node, ScalarNode, map_scalars

_PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")


def with_expressions(options: Sequence[Option]) -> list[Option]:
    """Returns the options with `${env:NAME}` in place of `{{ NAME }}` in values."""
    return [
        replace(option, value=map_scalars(option.value, _with_expressions)) for option in options
    ]


def _with_expressions(node: ScalarNode) -> ScalarNode:
    if not isinstance(node.value, str):
        return node
    if _PLACEHOLDER.search(node.written) is None:
        return node
    text, end = "", 0
    origins: list[int] = []
    for match in _PLACEHOLDER.finditer(node.written):
        expression = f"${{env:{match[1]}}}"
        text += node.written[end : match.start()] + expression
        origins += [*range(end, match.start()), *[match.start()] * (len(expression) - 1)]
        origins.append(match.end() - 1)
        end = match.end()
    text += node.written[end:]
    return node.derived(text, [*origins, *range(end, len(node.written) + 1)])


def located(file: File, value: Value, node: ScalarNode, origin: Text) -> Node:
    """Returns a value at the location of another one, which contains its texts."""
    if isinstance(value, dict):
        entries = {origin._replace(value=key): _part(node, text) for key, text in value.items()}
        return map_node(file, entries)
    if isinstance(value, list):
        return list_node(file, [_part(node, item) for item in value])
    return _part(node, value)


def _part(node: ScalarNode, value: Value) -> Node:
    """Returns a value as a part of a scalar, or with the scalar as its part."""
    if isinstance(value, str):
        start = node.written.find(value)
        if start >= 0 and value:
            return node.derived(value, range(start, start + len(value) + 1))
        before, found, after = value.partition(node.written.strip())
        if found and node.written.strip():
            start = node.written.find(found)
            end = start + len(found)
            origins = [start] * len(before) + [*range(start, end)] + [end - 1] * len(after)
            return node.derived(value, [*origins, end])
    return with_value(node, value)


def value_node(file: File, value: Value, origin: Text) -> Node:
    assert isinstance(value, str | bool)
    return derived_node(file, value, origin)


def with_value(node: Node, value: Value) -> Node:
    """Returns a scalar with another value, at its location."""
    if not isinstance(node, ScalarNode):
        return node
    assert not isinstance(value, list | dict)
    return replace(node, value=value, written=str(value), text=str(value), span=None)


def written_text(option: Option) -> str:
    """Returns the text of a scalar, and of a bare word in its case."""
    assert isinstance(option.value, ScalarNode)
    return option.value.written.strip() if option.value.plain else str(option.value.value)


def text_of(option: Option) -> str:
    value = option.value
    if not isinstance(value, ScalarNode):
        return ""
    return value.written.strip().lower() if value.plain else str(value.value)
