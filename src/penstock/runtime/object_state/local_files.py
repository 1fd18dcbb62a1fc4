"""Files of the local copy of a state: those that are stored, and their changes."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from penstock.core.errors import StateError
from penstock.runtime.dead_letters.store import KEPT
from penstock.runtime.state.entries import LOCK, LOG

LOCAL_ENTRIES = (LOCK, LOG, "stop", "taps")
"""Entries of a state directory that are not stored: they belong to processes of this machine."""
_LOGS = ("offsets", "commits")
"""Directories that are listed first: the files that their entries need are written before."""

Mark = tuple[int, int, int]
"""Size, time of modification and inode of a file. A change of the file changes them."""


def find_files(root: Path, paths: Iterable[Path]) -> dict[str, Mark]:
    """Returns the marks of the files at and below paths, by path relative to `root`."""
    found: dict[str, Mark] = {}
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            found |= {os.path.relpath(file, root): mark for file, mark in _walk(path)}
        elif (mark := _mark(path)) is not None:
            found[os.path.relpath(path, root)] = mark
    return {
        path: mark for path, mark in found.items() if path.partition("/")[0] not in LOCAL_ENTRIES
    }


def _walk(directory: Path) -> Iterator[tuple[Path, Mark]]:
    """Yields the visible files below a directory. Files that are removed meanwhile are missing."""
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    names.sort(key=lambda name: (name not in _LOGS, name))
    for name in names:
        if not name.startswith(".") or name == KEPT:
            yield from _walk(directory / name)
    for entry in entries:
        path = directory / entry.name
        if not entry.name.startswith(".") and (mark := _mark(path)) is not None:
            yield path, mark


def _mark(path: Path) -> Mark | None:
    """Returns the mark of a regular file; None without one."""
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino


def is_below(path: str, directories: Iterable[str]) -> bool:
    """Returns whether a path is one of `directories` or below one of them; "." is above all."""
    return any(each == "." or path == each or path.startswith(f"{each}/") for each in directories)


def check_names(paths: Iterable[str], url: str) -> None:
    """Raises StateError if a path of a manifest leads out of the local copy."""
    for path in paths:
        parts = PurePosixPath(path).parts
        if not parts or path.startswith("/") or ".." in parts or parts[0] in LOCAL_ENTRIES:
            raise StateError(
                f"{url} is damaged: it has the path {path!r}", code="corrupt-state",
                hint="Set another runtime.state.",
            )  # fmt: skip
