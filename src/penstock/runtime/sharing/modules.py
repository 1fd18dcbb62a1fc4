"""Python modules of the pipelines of a share, which have one name space."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable
from pathlib import Path

from penstock.core.errors import UserError


class LoadedModules:
    """The files of the Python modules that the pipelines of a share have loaded."""

    def __init__(self, share: str) -> None:
        self._share = share
        self._files: dict[str, tuple[Path, str]] = {}
        self._lock = threading.Lock()

    def add(self, files: Iterable[Path]) -> bool:
        """Adds the files of a pipeline. Returns False if one has changed since it was loaded.

        Raises UserError if another file has provided a module of the same name.
        """
        found = {module_name(file): (file.resolve(), _digest(file)) for file in files}
        with self._lock:
            known = {name: self._files[name] for name in found if name in self._files}
            for name, (file, _) in known.items():
                if found[name][0] != file:
                    raise UserError(
                        f'the module "{name}" is {found[name][0]}, and in the share '
                        f'"{self._share}" it is {file}',
                        code="share-conflict",
                        hint="Rename one of the files, or choose another share.",
                    )
            if any(found[name] != each for name, each in known.items()):
                return False
            self._files |= found
            return True


def module_name(file: Path) -> str:
    """Returns the name by which a file is imported, with the packages around it."""
    parts = [] if file.stem == "__init__" else [file.stem]
    directory = file.parent
    while (directory / "__init__.py").is_file():
        parts.insert(0, directory.name)
        directory = directory.parent
    return ".".join(parts)


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
