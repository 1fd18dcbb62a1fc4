"""Catalog of a directory: the files in it that are whole pipelines."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from penstock.core.errors import UserError
from penstock.spec.front_end import DEFAULT, SCRIPT_SUFFIX, is_test_file, language_of

SUFFIXES = (".yaml", ".yml", ".json", ".toml", SCRIPT_SUFFIX)
"""The suffixes of files that may be pipelines."""
MAX_FILES = 100_000
MAX_BYTES = 4 * 1024 * 1024
"""Larger files are data."""
_SECTIONS = tuple(
    re.compile(rf'^\s{{0,2}}"?{name}"?\s*:', re.MULTILINE) for name in ("sources", "sinks")
)
_INSERT = re.compile(r"^\s*INSERT\s+INTO\b", re.IGNORECASE | re.MULTILINE)


def pipeline_files(directory: Path) -> list[Path]:
    """Returns the files of a directory and its subdirectories that are pipelines, by name.

    A YAML file is a pipeline if it has sources and sinks, a script if it has an INSERT, and a file
    of another system if its front end recognizes it. Hidden directories, symbolic links and files
    of test cases are left out. Raises UserError without the directory.
    """
    if not directory.is_dir():
        raise UserError(f"{directory} is no directory", code="missing-file")
    return sorted(Path(entry.path) for entry in _files(directory) if _is_pipeline(entry))


def _files(directory: Path) -> Iterator[os.DirEntry[str]]:
    pending, found = [str(directory)], 0
    while pending:
        for entry in _entries(pending.pop()):
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                pending.append(entry.path)
            elif entry.name.endswith(SUFFIXES) and not entry.is_symlink():
                found += 1
                if found > MAX_FILES:
                    raise UserError(
                        f"{directory} has more than {MAX_FILES} files that may be pipelines",
                        code="too-many-files", hint="Choose a directory of pipelines only.",
                    )  # fmt: skip
                yield entry


def _entries(directory: str) -> list[os.DirEntry[str]]:
    """Returns the entries of a directory; none of one that cannot be read."""
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except OSError:
        return []


def _is_pipeline(entry: os.DirEntry[str]) -> bool:
    with suppress(OSError):
        status = entry.stat(follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            return False
        return _is_pipeline_text(entry.path, status.st_mtime_ns, status.st_size)
    return False


@lru_cache(maxsize=100_000)
def _is_pipeline_text(name: str, changed_ns: int, size: int) -> bool:
    """Returns whether a file of this time and size is a pipeline. Each file is read once."""
    path = Path(name)
    if is_test_file(path):
        return False
    language = language_of(name)
    if language not in (DEFAULT, "sql"):
        return True
    try:
        text = path.read_text("utf-8", "replace")
    except OSError:
        return False
    if language == "sql":
        return _INSERT.search(text) is not None
    return all(section.search(text) for section in _SECTIONS)
