"""Durable files: fsync of files and directories, and atomic replacement."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from penstock.core.files.private_files import DIRECTORY_MODE, open_private


def sync(path: Path) -> None:
    """Writes a file or a directory to disk, with fsync. A missing path is ignored."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def create_directory_durably(path: Path) -> None:
    """Creates a directory and its missing parents, for the owner only, durably.

    Existing directories keep their modes. The entry in an existing directory without read
    permission cannot be written to disk here.
    """
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing or [path]):
        folder.mkdir(DIRECTORY_MODE, exist_ok=True)
    for folder in missing:
        with suppress(PermissionError):
            sync(folder.parent)


def rename_durably(source: Path, target: Path) -> None:
    """Writes a complete file to disk and renames it, atomically and durably.

    Replaces an existing file.
    """
    sync(source)
    source.replace(target)
    sync(target.parent)


def copy_durably(source: Path, target: Path, ignored: Sequence[str] = ()) -> None:
    """Copies a directory tree to a new directory, durably, without names of `ignored` patterns."""
    create_directory_durably(target.parent)
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(*ignored))
    for folder, _, files in os.walk(target):
        for name in files:
            sync(Path(folder) / name)
        sync(Path(folder))
    sync(target.parent)


def replace_durably(path: Path, text: str) -> None:
    """Replaces a private file atomically and durably. Readers get the old or the new content."""
    create_directory_durably(path.parent)
    hidden = path.with_name(f".{path.name}.{os.getpid()}")
    with open_private(hidden, "w") as file:
        file.write(text)
    rename_durably(hidden, path)
