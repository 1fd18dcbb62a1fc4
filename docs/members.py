"""The public names of a module and their docstrings, read from its source."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from inspect import cleandoc
from itertools import pairwise
from pathlib import Path


@cache
def source_of(module: str) -> ast.Module:
    """The syntax tree of a module."""
    spec = find_spec(module)
    assert spec is not None and spec.origin is not None
    return ast.parse(Path(spec.origin).read_text())


def imported(module: str) -> dict[str, str]:
    """The names that a module imports from others of Penstock, with the modules."""
    return {
        alias.name: node.module
        for node in ast.walk(source_of(module))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("penstock.")
        for alias in node.names
    }


def entry(module: str, name: str) -> str:
    """A class with its public members, a function, or a constant, as Markdown."""
    body = source_of(module).body
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            page = text_of(node) + members(node)
            return page if page.strip() else f"A kind of {named_bases(node)}.\n\n"
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return described(node)
    return f"{texts_below(body).get(name, '')}\n\n"


def documented(module: str, name: str) -> dict[str, str]:
    """The attributes of a class that have docstrings."""
    for node in source_of(module).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return texts_below(node.body)
    return {}


def members(node: ast.ClassDef) -> str:
    """The public attributes and methods that have docstrings."""
    attributes = (
        f"`{name}`: {text}\n\n" for name, text in texts_below(node.body).items() if public(name)
    )
    methods = (
        described(each)
        for each in node.body
        if isinstance(each, ast.FunctionDef) and public(each.name) and ast.get_docstring(each)
    )
    return "".join([*attributes, *methods])


def named_bases(node: ast.ClassDef) -> str:
    """The classes that a class extends."""
    return " and ".join(f"`{ast.unparse(base)}`" for base in node.bases)


def described(node: ast.FunctionDef) -> str:
    """A function's signature and docstring."""
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    signature = f"def {node.name}({ast.unparse(node.args)}){returns}"
    return f"```python\n{signature}\n```\n\n{text_of(node)}"


def text_of(node: ast.ClassDef | ast.FunctionDef) -> str:
    """A docstring as a paragraph."""
    return f"{ast.get_docstring(node) or ''}\n\n"


def texts_below(body: Sequence[ast.stmt]) -> dict[str, str]:
    """The names that are assigned, with the docstrings below them."""
    found = {}
    for node, below in pairwise(body):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and isinstance(below, ast.Expr):
            text = getattr(below.value, "value", None)
            if isinstance(text, str):
                found[target.id] = cleandoc(text)
    return found


def public(name: str) -> bool:
    """Whether a name is meant for others."""
    return not name.startswith("_")
