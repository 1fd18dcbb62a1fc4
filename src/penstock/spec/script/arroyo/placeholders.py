"""Placeholders of Arroyo, `{{ NAME }}`, as expressions of Penstock, `${env:NAME}`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from penstock.spec.script.options import Option
from penstock.spec.tree.nodes import Node, ScalarNode, SequenceNode

_PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")


def with_expressions(options: Sequence[Option]) -> list[Option]:
    """Returns the options with `${env:NAME}` in place of `{{ NAME }}` in values."""
    return [replace(option, value=_with_expressions(option.value)) for option in options]


def _with_expressions(node: Node) -> Node:
    if isinstance(node, SequenceNode):
        return replace(node, items=tuple(map(_with_expressions, node.items)))
    if not isinstance(node, ScalarNode) or not isinstance(node.value, str):
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
