"""What a message talks of: `source "clicks" (type: kafka)`."""

from __future__ import annotations

from penstock.spec.document import Document
from penstock.spec.nodes import Mapping, Node, Route, Scalar

KINDS = {
    "sources": "source",
    "transforms": "transform",
    "sinks": "sink",
    "connections": "connection",
}


def about(document: Document, route: Route) -> tuple[str, str]:
    """The thing that `route` lies in, and the rest of the route as `watermark.column`."""
    head = route[0] if route else None
    if head in KINDS and len(route) > 1:
        return _node(document, str(head), str(route[1])), dotted(route[2:])
    if head == "tests" and len(route) > 1:
        return _test(document, route[1]), dotted(route[2:])
    if head in {"runtime", "dead_letter"}:
        return str(head), dotted(route[1:])
    return "", dotted(route)


def dotted(route: Route) -> str:
    """`a.b[0]`."""
    parts = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in route)
    return "".join(parts).lstrip(".")


def _node(document: Document, section: str, name: str) -> str:
    kind = _text(document.find((section, name, "type")))
    return f'{KINDS[section]} "{name}"' + (f" (type: {kind})" if kind else "")


def _test(document: Document, index: str | int) -> str:
    name = _text(document.find(("tests", index, "name")))
    if name:
        return f'test "{name}"'
    return f"test {index + 1}" if isinstance(index, int) else f'test "{index}"'


def _text(node: Node | None) -> str | None:
    if isinstance(node, Mapping) or not isinstance(node, Scalar):
        return None
    return node.written if isinstance(node.value, str) else None
