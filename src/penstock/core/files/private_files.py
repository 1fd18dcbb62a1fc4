"""Private files: files and directories that only their owner can read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600


def create_directory(path: Path) -> None:
    """Creates a directory and its missing parents, for the owner only.

    Existing directories keep their modes.
    """
    missing = []
    while not path.exists():
        missing.append(path)
        path = path.parent
    for directory in reversed(missing):
        directory.mkdir(DIRECTORY_MODE, exist_ok=True)


def open_private(path: Path, mode: str) -> IO[Any]:
    """Opens a file, and creates it for the owner only if it is missing."""
    return open(path, mode, opener=_open)


def _open(path: str, flags: int) -> int:
    return os.open(path, flags, FILE_MODE)
