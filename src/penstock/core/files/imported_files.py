"""Files that a file imports: Python modules beside it, and files of Protocol Buffers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

_IMPORT = re.compile(r'^\s*import\s+(?:public\s+|weak\s+)?"([^"]+)"\s*;', re.MULTILINE)


def with_imports(paths: Iterable[Path], bases: Iterable[Path]) -> list[Path]:
    """Returns files and all files that they import, if these are beside them or in `bases`."""
    found: dict[Path, None] = {}
    directories = list(bases)
    waiting = list(paths)
    while waiting:
        path = waiting.pop(0)
        if path not in found:
            found[path] = None
            waiting += _imported(path, [path.parent, *directories])
    return list(found)


def module_files(name: str, bases: Iterable[Path]) -> Iterator[Path]:
    """Yields the files of a module in the first of the directories that has it.

    The files are those of the module and of the packages around it. A package by itself is its
    `__init__.py`.
    """
    parts = name.split(".")
    for base in bases:
        path = base.joinpath(*parts)
        module = next((p for p in (path.with_suffix(".py"), path / "__init__.py") if _is(p)), None)
        if module is not None:
            packages = (base.joinpath(*parts[:end]) for end in range(1, len(parts)))
            inits = (package / "__init__.py" for package in packages)
            yield from [*(init for init in inits if _is(init)), module]
            return


def _imported(path: Path, bases: list[Path]) -> Iterator[Path]:
    if path.suffix == ".proto":
        for name in _IMPORT.findall(path.read_text("utf-8", "replace")):
            yield from [base / name for base in bases if _is(base / name)][:1]
    elif path.suffix == ".py":
        for module in _module_names(path.read_text("utf-8", "replace")):
            yield from module_files(module, bases)


def _module_names(code: str) -> Iterator[str]:
    """Yields the names of modules, and names that may be modules, in the imports of a file."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if module:
                yield module
            yield from (f"{module}.{alias.name}".lstrip(".") for alias in node.names)


def _is(path: Path) -> bool:
    return path.is_file()
