"""The pipeline of a state directory: the files of its last run.

The files keep pipelines of the same name apart. Their paths are relative to the directory, so that
a project can be moved with its state.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from penstock.core.errors import StateError
from penstock.engine.checkpoints.state_storage import LOCAL, StateStorage
from penstock.plan.model import Plan
from penstock.runtime.state.directory import StateDirectory
from penstock.runtime.state.entries import PIPELINE

STANDARD_INPUT = "-"


def open_state(plan: Plan) -> StateDirectory:
    """Returns the state directory of a plan.

    Raises StateError if the directory belongs to a pipeline of the same name in another file. If
    that file no longer exists, it was renamed, and the plan continues its state.
    """
    state = StateDirectory(plan.state, state_storage(plan))
    _check_files(plan, state)
    return state


def state_storage(plan: Plan) -> StateStorage:
    """Returns the storage of the state of a plan. Does not connect."""
    location = plan.location
    if location.url is None or plan.state != location.directory:
        return LOCAL
    from penstock.runtime.object_state.client import ObjectClient
    from penstock.runtime.object_state.mirror import ObjectStorage

    return ObjectStorage(ObjectClient(location.url, location.storage), plan.state)


def record_files(plan: Plan, state: StateDirectory) -> str | None:
    """Records the files of a plan in its locked state directory.

    Returns a note for the user if the files of the last run no longer exist. Raises StateError as
    `open_state` does.
    """
    _check_files(plan, state)
    current, recorded = _files(plan), _recorded(state)
    if state.storage is not LOCAL or not current or current == recorded:
        return None
    root = _normalized(state.root)
    state.write(PIPELINE, {"files": [os.path.relpath(path, root) for path in current]})
    renamed = _missing(recorded, current)
    if not renamed or not _missing(current, recorded):
        return None
    return f"{_text(current)} continues the state of {_text(renamed)}, which no longer exists."


def _check_files(plan: Plan, state: StateDirectory) -> None:
    current, recorded = _files(plan), _recorded(state)
    others = [path for path in _missing(recorded, current) if path.exists()]
    if others and _missing(current, recorded):
        this, other = _text(current), _text(recorded)
        raise StateError(
            f'{this} and {other} define pipelines of the same name, "{plan.name}", and the state '
            f"belongs to {other}",
            code="other-pipeline",
            detail=f"state directory: {state.root}",
            hint=f"Give {this} another name, or set another runtime.state. To continue the state "
            f"with {this}, move or remove {_text(others)}.",
        )


def _files(plan: Plan) -> list[Path]:
    """Returns the files of a plan; none for a pipeline from standard input."""
    return [_normalized(Path(name)) for name in plan.pipeline.files if name != STANDARD_INPUT]


def _recorded(state: StateDirectory) -> list[Path]:
    """Returns the files of the last run; none without a record, as in earlier versions.

    A state in an object store has no record: the files of another machine have other paths.
    """
    try:
        entry = state.read(PIPELINE)
    except StateError as error:
        if error.code != "corrupt-state":
            raise
        return []
    return [] if entry is None else [_normalized(state.root / name) for name in entry["files"]]


def _normalized(path: Path) -> Path:
    """Returns an absolute path without `..`. Symbolic links remain, as in the path of a user."""
    return Path(os.path.normpath(path.absolute()))


def _missing(paths: Iterable[Path], among: Sequence[Path]) -> list[Path]:
    """Returns the paths whose files are not among others."""
    return [path for path in paths if not any(_is_same(path, other) for other in among)]


def _is_same(path: Path, other: Path) -> bool:
    return path == other or (path.exists() and other.exists() and path.samefile(other))


def _text(paths: Iterable[Path]) -> str:
    here = Path.cwd()
    return ", ".join(
        str(path.relative_to(here) if path.is_relative_to(here) else path) for path in paths
    )
