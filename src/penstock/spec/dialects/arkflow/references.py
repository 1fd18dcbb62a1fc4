"""Variables and secrets in the values of an ArkFlow file."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from penstock.core.errors import SpecError
from penstock.spec.dialects.arkflow.reading import Findings
from penstock.spec.tree.nodes import Entry, MappingNode, Node, ScalarNode, SequenceNode

_REFERENCE = re.compile(r"\$?\$\{([^{}]*)\}|\$\{")
_VARIABLE = re.compile(r"(?:env:)?[A-Za-z_][A-Za-z0-9_]*(?::-.*)?\Z", re.DOTALL)
_BARE = re.compile(r"[A-Z_][A-Z0-9_]*(?::-.*)?\Z", re.DOTALL)


def with_references(node: Node, findings: Findings) -> Node:
    """Returns a tree whose values have the variables of Penstock.

    `${secret:NAME}` is the variable ARKFLOW_SECRET_NAME, `${file:PATH}` the text of a file. Other
    texts with `${` stay as they are.
    """
    if isinstance(node, MappingNode):
        entries = (Entry(each.key, with_references(each.value, findings)) for each in node.entries)
        return replace(node, entries=tuple(entries))
    if isinstance(node, SequenceNode):
        return replace(node, items=tuple(with_references(each, findings) for each in node.items))
    if not isinstance(node.value, str) or "${" not in node.written:
        return node
    secrets: list[str] = []

    def translate(match: re.Match[str]) -> str:
        return _translate(match, node, findings, secrets)

    text = _REFERENCE.sub(translate, node.written)
    if text == node.written and not secrets:
        return node
    return replace(node, value=text, written=text, text=text, span=None, secret=bool(secrets))


def _translate(
    match: re.Match[str], node: ScalarNode, findings: Findings, secrets: list[str]
) -> str:
    inner = match[1]
    if match[0].startswith("$$") or inner is None:
        return match[0] if match[0].startswith("$$") else "$${"
    if inner.startswith("secret:"):
        return "${ARKFLOW_SECRET_" + inner.removeprefix("secret:") + "}"
    if inner.startswith("file:"):
        path = Path(inner.removeprefix("file:"))
        try:
            text = path.read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            findings.errors.append(
                SpecError(
                    f"cannot read {path}: {error}", code="unreadable-file", where=node.location
                )
            )
            return ""
        secrets.append(text)
        return text.replace("${", "$${")
    is_variable = (inner.startswith("env:") and _VARIABLE.match(inner)) or _BARE.match(inner)
    return match[0] if is_variable else "$" + match[0]
