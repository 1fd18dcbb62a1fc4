"""Python files of users as modules, which every process of a run can import.

The name of such a module has the path of its file and a checksum of its content: a class of the
file is pickled by this name, and a process without the module imports the file again. A changed
file is another module. On a cluster all machines must have the file at the same path.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import zlib
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from penstock.core.python_permission import require_python


def import_file(path: Path) -> ModuleType:
    """Imports a file, or returns its module. Raises the errors of the file, and OSError.

    Raises PlanError if Python is not permitted.
    """
    require_python("a Python file")
    path = path.absolute()
    checksum = zlib.crc32(path.read_bytes())
    name = f"{__name__}.f{str(path).encode().hex()}_{checksum:08x}"
    return importlib.import_module(name)


class _Finder:
    """The finder of the modules of files, by their names."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        parent, _, last = name.rpartition(".")
        if parent != __name__:
            return None
        file = bytes.fromhex(last[1:].partition("_")[0]).decode()
        directory = str(Path(file).parent)
        if directory not in sys.path:
            sys.path.append(directory)
        return importlib.util.spec_from_file_location(name, file)


sys.meta_path.append(_Finder)
