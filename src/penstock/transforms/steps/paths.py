"""Paths in options of the transform `steps`."""

from __future__ import annotations

from pathlib import Path


def locate(path: str, base: Path) -> Path:
    """Returns a path from the working directory if it exists there, else from `base`."""
    return Path(path).absolute() if Path(path).exists() else base / path
