"""Verification that the executors of a cluster share the state directory of the driver.

Tasks write dead letters, counts and the state of updating queries to this directory. Without it the
driver would miss them without an error.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext

from penstock.core.error_codec import encode_errors
from penstock.core.errors import StateError
from penstock.core.log import Log
from penstock.engine.spark_session.cluster import await_executors, is_local, registered_executors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STATE = "penstock.state"
_PROBE_SECONDS = 0.3
"""The duration of a probe, so that no executor runs the probes of another one."""
_PROBE = pa.schema([("error", pa.string())])


def share_state(session: SparkSession, lock: Path, log: Log) -> None:
    """Makes tasks of this thread and of its queries verify that they share the state directory.

    `lock` is a file of the directory whose content differs in each run. Each Python worker reads it
    before its first row (see `verify_state`), and all executors of now read it at once. Raises
    StateError if an executor reads another content. Does nothing for a local master.
    """
    if is_local(session):
        return
    await_executors(session, log)
    context = session.sparkContext
    expected = {"lock": str(lock), "content": lock.read_text(), "host": socket.gethostname()}
    context.setLocalProperty(_STATE, json.dumps(expected))
    slots = max(int(context.defaultParallelism), registered_executors(session))
    probes = session.range(0, slots, 1, slots).mapInArrow(_probe, "error string")
    errors = sorted({row.error for row in probes.collect() if row.error is not None})
    if errors:
        raise _not_shared(lock.parent, errors)


def verify_state() -> None:
    """Raises StateError in a task whose machine has no access to the state directory."""
    expected = _expected()
    if expected is None or expected in _verified:
        return
    if (error := _state_error(expected)) is not None:
        raise _not_shared(Path(json.loads(expected)["lock"]).parent, [error])
    _verified.add(expected)


_verified: set[str] = set()
"""The state directories that this process has read."""


def _expected() -> str | None:
    context = TaskContext.get()
    return None if context is None else context.getLocalProperty(_STATE)


@encode_errors
def _probe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields the error of this executor, or null."""
    for _ in batches:
        pass
    time.sleep(_PROBE_SECONDS)
    expected = _expected()
    error = None if expected is None else _state_error(expected)
    yield pa.RecordBatch.from_pylist([{"error": error}], schema=_PROBE)


def _state_error(expected: str) -> str | None:
    """Returns the reason that this machine does not share the state directory; None if it does."""
    state = json.loads(expected)
    hosts = f"executor on {socket.gethostname()}, driver on {state['host']}"
    try:
        content = Path(state["lock"]).read_text()
    except OSError as error:
        return f"{hosts}: {error.strerror}: {state['lock']}"
    return None if content == state["content"] else f"{hosts}: {state['lock']} differs"


def _not_shared(directory: Path, errors: list[str]) -> StateError:
    return StateError(
        f"the executors do not share the state directory {directory}",
        code="state-not-shared",
        detail="\n".join(errors),
        hint="Set runtime.state to a path that all machines of the cluster share, such as NFS, and "
        "run the driver and the executors as the same user.",
    )
