"""Paths that the tasks of a plan open, and that the executors of a cluster must share.

Sources, SQL, Python and sinks of other systems need none of them: their reports travel with the
results of tasks. The state of queries and local files do.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from penstock.core.errors import PenstockError, raise_all
from penstock.core.location import Location
from penstock.engine.spark_session.executors import Executors
from penstock.engine.spark_session.shared_paths import SharedPath
from penstock.plan.local_data import local_data
from penstock.plan.model import Plan, Query
from penstock.plan.node import Node
from penstock.sdk import Capability, ReceivingSource
from penstock.sdk.data_frames import DataFrameSource

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
def required_paths(plan: Plan, lock: Path, identity: str) -> Iterator[list[RequiredPath]]:
    """Yields the paths that executors must share. Creates a file in directories of sinks meanwhile.

    `identity` is the ID of the state directory, so that a run replaces the files of a killed run.
    """
    token = f".penstock-{identity}"
    required = list(_state_paths(plan, lock))
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
                elif _is_read_by_tasks(node):
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


def _state_paths(plan: Plan, lock: Path) -> Iterator[RequiredPath]:
    """Yields the state directory for each node whose tasks use files there."""
    streaming = {name for query in plan.queries for name in query.stream_nodes}
    updating = {name for query in plan.queries for name in _with_updating_state(plan, query)}
    for node in plan.nodes.values():
        found = _content_in_state(node, node.name in streaming)
        if node.name in updating:
            found = "the state of an updating query", ""
        if found is not None:
            content, instead = found
            message = (
                f"the executors do not share the state directory {lock.parent}, in which "
                f"{node.label} keeps {content}"
            )
            hint = f"{_STATE_HINT}{instead}."
            path = SharedPath.on_driver(lock, message, "state-not-shared", hint, kept=True)
            yield RequiredPath(path, node.where)


def _content_in_state(node: Node, in_stream: bool) -> tuple[str, str] | None:
    """Returns the content of a node in the state directory, and the hint of an alternative.

    A transform that is computed once for the whole input keeps no state.
    """
    if isinstance(node.component, ReceivingSource):
        return "received messages", ", or send the messages to a broker such as Kafka"
    if isinstance(node.component, DataFrameSource):
        return "the rows that Spark has read", ""
    if node.in_state:
        return "its rows", ""
    if node.lookup is not None and not node.can(Capability.LOOKUP_BY_KEY):
        return "its rows", ", or read the table once by static: true"
    if node.stateful and in_stream:
        return "the state of a query", ""
    if node.batch_function is not None and node.batch_function.carries_rows:
        return "rows for the next batch", ""
    return None


def _with_updating_state(plan: Plan, query: Query) -> Sequence[str]:
    """Returns the nodes with the state of an updating query: those with groups or joins, if any."""
    if not query.updating:
        return ()
    nodes = [plan.nodes[name] for name in (*query.stream_nodes, *query.batch_nodes)]
    updating = [node for node in nodes if node.updating] or nodes
    return [node.name for node in updating if node.stateful] or [node.name for node in updating]


def _is_read_by_tasks(node: Node) -> bool:
    """Returns whether tasks read a source. The driver reads static tables."""
    return node.kind == "source" and (not node.static or node.lookup is not None)


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
