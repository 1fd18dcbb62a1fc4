"""The directory to which the paths in a log of discovered files are relative.

It is the directory of the pipeline file. A pipeline file may be moved alone, while its files stay
where they are and its options name them by absolute paths. Their paths in the log then remain
relative to the former directory, which is recorded beside the log.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from penstock.core.files.durable import replace_durably
from penstock.core.paths import Project

_NAME = "files.base"


def log_base(state: Path | None, project: Path, paths: Sequence[str]) -> Path:
    """Returns the directory of the paths in the log of a source that reads these paths."""
    recorded = None if state is None else _recorded(state)
    if recorded is None or not all(_is_below(path, recorded) for path in paths):
        return project
    is_inner = recorded != project and _is_below(str(recorded.resolve()), project.resolve())
    return recorded if is_inner or not all(_is_below(path, project) for path in paths) else project


def record_base(state: Path | None, base: Path) -> None:
    """Records the directory durably."""
    if state is not None and _recorded(state) != base:
        replace_durably(state / _NAME, json.dumps(str(base)))


def _recorded(state: Path) -> Path | None:
    """Returns the recorded directory; None without one, as of earlier versions."""
    try:
        return Path(json.loads((state / _NAME).read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def _is_below(path: str, directory: Path) -> bool:
    return Project(directory).relative(path) != path
