"""The syntax tree of TypeScript."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.transforms.sandbox.child import CodeError

if TYPE_CHECKING:
    from ast_grep_py import SgNode


def parse(text: str) -> SgNode:
    """Returns the root of the tree."""
    from ast_grep_py import SgRoot

    return SgRoot(text, "typescript").root()


def span(node: SgNode) -> tuple[int, int]:
    """Returns the indexes of the first character and the one after the last."""
    found = node.range()
    return found.start.index, found.end.index


def child(node: SgNode, *kinds: str) -> SgNode | None:
    """Returns the first child of some kinds."""
    return next((each for each in node.children() if each.kind() in kinds), None)


def error_at(node: SgNode, message: str) -> CodeError:
    """Returns an error at the start of a node."""
    start = node.range().start
    return CodeError(message, start.line + 1, start.column + 1)
