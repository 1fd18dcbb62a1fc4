"""Variables and secrets in the values of an ArkFlow file."""

from __future__ import annotations

import re
from dataclasses import replace

from penstock.spec.tree.nodes import Node, ScalarNode, map_scalars

_REFERENCE = re.compile(r"\$?\$\{([^{}]*)\}|\$\{")
_VARIABLE = re.compile(r"(?:env:)?[A-Za-z_][A-Za-z0-9_]*(?::-.*)?\Z", re.DOTALL)
_BARE = re.compile(r"[A-Z_][A-Z0-9_]*(?::-.*)?\Z", re.DOTALL)


def with_references(node: Node) -> Node:
    """Returns a tree whose values have the variables of Penstock.

    `${secret:NAME}` is the variable ARKFLOW_SECRET_NAME. Other texts with `${` than variables and
    files stay as they are.
    """
    return map_scalars(node, _with_references)


def _with_references(node: ScalarNode) -> ScalarNode:
    if not isinstance(node.value, str) or "${" not in node.written:
        return node
    text = _REFERENCE.sub(_translate, node.written)
    if text == node.written:
        return node
    return replace(node, value=text, written=text, text=text, span=None)


def _translate(match: re.Match[str]) -> str:
    inner = match[1]
    if match[0].startswith("$$") or inner is None:
        return match[0] if match[0].startswith("$$") else "$${"
    if inner.startswith("secret:"):
        return "${ARKFLOW_SECRET_" + inner.removeprefix("secret:") + "}"
    if inner.startswith("file:"):
        return match[0]
    is_variable = (inner.startswith("env:") and _VARIABLE.match(inner)) or _BARE.match(inner)
    return match[0] if is_variable else "$" + match[0]
