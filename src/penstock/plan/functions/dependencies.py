"""Python packages that functions require, checked without importing them."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from penstock.core.errors import PlanError
from penstock.spec.dialects.python_functions import MODULES

_INLINE = re.compile(r"(?m)^# /// script\s*$\n(?P<toml>(?:^#(?:| .*)$\n)+?)^# ///\s*$")
_PROVIDED = {"penstock", *MODULES}


def inline_dependencies(source: str) -> list[str]:
    """Returns the dependencies of the inline metadata of a script (`# /// script`)."""
    match = _INLINE.search(source)
    if match is None:
        return []
    lines = (line[2:] if line.startswith("# ") else line[1:] for line in match["toml"].splitlines())
    try:
        metadata = tomllib.loads("\n".join(lines))
    except tomllib.TOMLDecodeError as error:
        raise PlanError(
            f"the inline metadata is not valid TOML: {error}", code="invalid-dependency"
        ) from error
    return [str(item) for item in metadata.get("dependencies", [])]


def missing_imports(tree: ast.AST, base: Path) -> Iterator[tuple[str, ast.stmt]]:
    """Yields the imported modules that are neither installed nor beside the file.

    Imports within `try` may be missing.
    """
    optional = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.Try)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names = [node.module]
        for name in names:
            if id(node) not in optional and not _exists(name.split(".")[0], base):
                assert isinstance(node, ast.stmt)
                yield name, node


def _exists(name: str, base: Path) -> bool:
    if name in sys.modules or name in _PROVIDED:
        return True
    if (base / f"{name}.py").is_file() or (base / name).is_dir():
        return True
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False
