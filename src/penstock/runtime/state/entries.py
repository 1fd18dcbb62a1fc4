"""Entries of a state directory: their names, the marker and their removal.

The marker is the file `version`, written when Penstock creates the directory. Without the marker
the entries of a directory belong to the user.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from penstock.core.errors import StateError

MARKER = "version"
LOCK = "lock"
LOG = "spark.log"
HISTORY = "runs.jsonl"
RUN = "run.json"
ID = "id"
PIPELINE = "pipeline.json"
BATCHES = "batches.jsonl"
PRESERVED = (LOCK, LOG, HISTORY, RUN, MARKER, ID, PIPELINE, BATCHES)
"""Entries that remain after a reset."""
REMOVED = (
    "plan.json", "key.json", "schemas.json", "primary_keys.json", "checkpoints", "nodes", "spool",
    "dead_letters", "status.json", "stop", "complete", "closing", "life", "replay.json",
    "sinks.json", "backfill", "taps",
)  # fmt: skip
"""Entries that a reset removes."""

_TEMPORARY = re.compile(r"\.(?P<name>[a-z_.]+)\.\d+")
"""The name of a temporary file of `core.files.durable.replace_durably`."""


def read_marker(root: Path) -> dict[str, Any] | None:
    """Returns the content of the marker: layout and version. None without a valid marker."""
    try:
        marker = json.loads((root / MARKER).read_text())
    except (FileNotFoundError, IsADirectoryError, ValueError):
        return None
    return marker if isinstance(marker, dict) and isinstance(marker.get("layout"), int) else None


def check_ownership(root: Path) -> None:
    """Raises StateError if a directory without the marker contains names of state entries.

    Lists the entries first: another process may be about to write the marker.
    """
    names = sorted(path.name for path in root.iterdir())
    foreign = [name for name in names if name in (*PRESERVED, *REMOVED)]
    if LOCK in foreign and _is_own_lock(root / LOCK):
        foreign.remove(LOCK)
    if foreign and read_marker(root) is None:
        raise StateError(
            f"expected the state of a pipeline in {root}, "
            f"found files that Penstock did not create: {', '.join(foreign)}",
            code="foreign-directory",
            hint="Set runtime.state to another directory, or move these files elsewhere.",
        )


def remove_entries(root: Path) -> None:
    """Removes the entries that a reset removes, and temporary files. Follows no symbolic links."""
    for path in root.iterdir():
        temporary = _TEMPORARY.fullmatch(path.name)
        if path.name not in REMOVED and (
            temporary is None or temporary["name"] not in (*PRESERVED, *REMOVED)
        ):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _is_own_lock(path: Path) -> bool:
    """Returns whether a file is empty or contains the owner of a run."""
    if not path.is_file():
        return False
    try:
        text = path.read_text()
        owner = json.loads(text or "{}")
    except ValueError:
        return False
    return not text or (isinstance(owner, dict) and "pid" in owner)
