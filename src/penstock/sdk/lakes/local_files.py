"""Files of tables in the local file system."""

from __future__ import annotations

import os
from pathlib import Path

from penstock.core.files.durable import sync


def sync_file(path: Path, root: Path) -> None:
    """Writes a file and its directories up to `root` to disk."""
    sync(path)
    for folder in path.parents:
        sync(folder)
        if folder == root:
            break


def probe_directory(path: Path) -> None:
    """Checks that files can be created in a directory that may be missing. Raises OSError."""
    existing = next(each for each in (path, *path.parents) if each.exists())
    if not existing.is_dir():
        raise NotADirectoryError(f"{existing} is not a directory")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise PermissionError(f"no permission to write to {existing}")
