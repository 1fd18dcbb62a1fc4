"""Modules of a project, whose files are shipped to the executors of a cluster."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.core.files.imported_files import module_files, with_imports
from penstock.core.files.shipped_file import copy_files, has_content, is_shipping


@dataclass(frozen=True)
class ShippedModules:
    """The module of `function`, and those that it imports, in the directory `base`.

    While files are shipped, a pickle contains their content. On a machine without these files in
    `base`, the unpickled value has a private copy of them in place of `base`. The modules of one
    `base` have one copy, because Python imports each package from one directory.
    """

    function: str
    base: Path
    files: Mapping[str, bytes] | None = field(default=None, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        files = self.files
        if files is None and is_shipping():
            files = _read(self.function, self.base)
        return _received, (self.function, self.base, files)


def _read(function: str, base: Path) -> Mapping[str, bytes]:
    """Returns the files of the project that a function needs, by path below the directory."""
    paths = with_imports(_files(function, base), [base])
    return {
        path.relative_to(base).as_posix(): path.read_bytes()
        for path in paths
        if path.is_relative_to(base)
    }


def _received(function: str, base: Path, files: Mapping[str, bytes] | None) -> ShippedModules:
    if files and not all(has_content(base / name, content) for name, content in files.items()):
        base = copy_files(files, str(base))
        importlib.invalidate_caches()
    return ShippedModules(function, base, files)


def _files(function: str, base: Path) -> list[Path]:
    module, separator, _ = function.partition(":")
    return [*module_files(module, [base])] if separator else []
