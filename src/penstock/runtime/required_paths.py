"""Paths that the tasks of a plan open, and that the executors of a cluster must share.

Sources, SQL, Python and sinks of other systems need none of them: their reports are shipped with
the results of tasks. The driver serves the state of updating queries, lookup tables and received
messages. Local files, and the state that Spark writes, are at paths.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from penstock.core.errors import PenstockError, raise_all
from penstock.core.location import Location
from penstock.engine.spark_session.executors import Executors
from penstock.engine.spark_session.shared_paths import SharedPath
from penstock.plan.executor_state import executor_state
from penstock.plan.local_data import local_data
from penstock.plan.model import Plan
from penstock.plan.node import Node

_STATE_HINT = (
    "Set runtime.state to a path that all machines of the cluster share, such as NFS, and run the "
    "driver and the executors as the same user"
)
_DATA_HINT = "Write the URL of an object store, or a directory that all machines share."
_MAGIC = frozenset("*?[")


class RequiredPath(NamedTuple):
    """A path that the executors must share, for the node at a location."""

    shared: SharedPath
    where: Location | None


@contextmanager
def required_paths(
    plan: Plan, lock: Path, identity: str, *, is_served: bool
) -> Iterator[list[RequiredPath]]:
    """Yields the paths that executors must share. Creates a file in directories of sinks meanwhile.

    With `is_served` the driver serves files of the state directory. `identity` is the ID of that
    directory, so that a run replaces the files of a killed run.
    """
    token = f".penstock-{identity}"
    required = list(_state_paths(plan, lock, is_served=is_served))
    made: set[Path] = set()
    try:
        for node, _, paths in local_data(plan):
            if node is not plan.nodes.get(node.name):
                continue
            for path in paths:
                if node.kind == "sink":
                    sample = _directory(path) / token
                    if sample in made or _make(sample):
                        made.add(sample)
                        required.append(_data_path(node, path, sample, kept=True))
                elif _is_read_by_tasks(node, is_served=is_served):
                    required.append(_data_path(node, path, _sample(path)))
        yield required
    finally:
        for sample in made:
            sample.unlink(missing_ok=True)


def check_executors(executors: Executors, required: list[RequiredPath]) -> None:
    """Waits for the executors. Raises StateError for each required path that one does not share.

    Raises UserError for an executor with other versions, and Transient without executors.
    """
    unshared = executors.await_ready()
    errors: list[PenstockError] = [
        path.shared.error(unshared[path.shared], path.where)
        for path in required
        if path.shared in unshared
    ]
    raise_all(errors)


def state_path(lock: Path) -> SharedPath:
    """Returns the state directory as a path, by its lock, whose content differs in each run."""
    return SharedPath.on_driver(
        lock, f"the executors do not share the state directory {lock.parent}", "state-not-shared",
        f"{_STATE_HINT}.", kept=True,
    )  # fmt: skip


def _state_paths(plan: Plan, lock: Path, *, is_served: bool) -> Iterator[RequiredPath]:
    """Yields the state directory for each node whose tasks use files there."""
    for state in executor_state(plan):
        if not (is_served and state.is_served):
            message = (
                f"the executors do not share the state directory {lock.parent}, in which "
                f"{state.node.label} keeps {state.content}"
            )
            hint = f"{_STATE_HINT}{state.instead}."
            path = SharedPath.on_driver(lock, message, "state-not-shared", hint, kept=True)
            yield RequiredPath(path, state.node.where)


def _is_read_by_tasks(node: Node, *, is_served: bool) -> bool:
    """Returns whether tasks read a source. The driver reads static tables, and those it serves."""
    if node.kind != "source" or not node.static:
        return node.kind == "source"
    return node.lookup is not None and not is_served


def _data_path(node: Node, path: str, sample: Path, *, kept: bool = False) -> RequiredPath:
    message = f"{node.label}: the executors do not share {path}"
    return RequiredPath(
        SharedPath.on_driver(sample, message, "path-not-shared", _DATA_HINT, kept=kept), node.where
    )


def _sample(path: str) -> Path:
    """Returns a readable file below the path of a source, or else its directory.

    The path may be a pattern.
    """
    parts = takewhile(lambda part: not _MAGIC & {*part}, Path(path).parts)
    root = Path(*parts)
    if not root.is_dir():
        return root if root.is_file() else root.parent
    names = sorted(file.name for file in root.iterdir() if not file.name.startswith("."))
    files = (root / name for name in names if (root / name).is_file())
    return next((file for file in files if os.access(file, os.R_OK)), root)


def _directory(path: str) -> Path:
    """Returns the directory of a sink, or that of its file."""
    found = Path(path)
    is_file = found.is_file() or (found.suffix and not found.exists())
    return found.parent if is_file else found


def _make(token: Path) -> bool:
    """Creates a file with new content. Returns whether this is possible."""
    try:
        token.parent.mkdir(parents=True, exist_ok=True)
        token.write_text(secrets.token_hex(16))
    except OSError:  # The sink reports the reason.
        return False
    return True
