"""Paths of the driver's machine that tasks open on the executors of a cluster.

An executor with another disk would write files that the driver never finds, or read others, without
an error. Each Python worker therefore compares the paths with those of the driver before its first
row.
"""

from __future__ import annotations

import hashlib
import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pyspark import TaskContext

from penstock.core.errors import StateError
from penstock.core.location import Location
from penstock.engine.spark_session.local_property import local_property
from penstock.engine.spark_session.versions import different_versions, other_versions, versions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PATHS = "penstock.paths"
"""The local property of jobs with the paths as JSON. Jobs without it have no paths to compare."""
_SAMPLE_BYTES = 4096


@dataclass(frozen=True)
class SharedPath:
    """A path that tasks open, with the error of an executor that does not share it.

    `sample` is a file there, whose first `length` bytes have this digest. Without a digest it is a
    directory. With `kept` the sample exists as long as the run, so that workers that start later
    compare it, too.
    """

    message: str
    code: str
    hint: str
    sample: str
    length: int = 0
    digest: str = ""
    kept: bool = False

    @classmethod
    def on_driver(
        cls, sample: Path, message: str, code: str, hint: str, *, kept: bool = False
    ) -> Self:
        """Returns a path with a sample on this machine."""
        content = _head(sample, _SAMPLE_BYTES) if sample.is_file() else b""
        digest = _digest(content) if sample.is_file() else ""
        return cls(message, code, hint, str(sample), len(content), digest, kept)

    def difference(self) -> str | None:
        """Returns the reason that this machine does not share the path; None if it does."""
        path = Path(self.sample)
        try:
            if not self.digest:
                return None if path.is_dir() else f"no such directory: {path}"
            same = _digest(_head(path, self.length)) == self.digest
        except OSError as error:
            return f"{error.strerror}: {path}"
        return None if same else f"{path} differs"

    def error(self, details: Sequence[str], where: Location | None = None) -> StateError:
        """Returns the error of executors that do not share the path."""
        detail = "\n".join(details)
        return StateError(self.message, code=self.code, detail=detail, hint=self.hint, where=where)


@contextmanager
def share_paths(
    session: SparkSession, state: SharedPath, required: Sequence[SharedPath]
) -> Iterator[None]:
    """Makes tasks of this thread and of its queries compare the required paths (`verify_paths`).

    `state` is the state directory, which is not required by itself (see `shares_state`).
    """
    expected = {
        "host": socket.gethostname(),
        "versions": versions(),
        "state": asdict(state),
        "required": [asdict(path) for path in required if path.kept],
    }
    with local_property(session, _PATHS, json.dumps(expected)):
        yield


def verify_paths() -> None:
    """Raises StateError in a task on a machine that does not share the required paths.

    Raises UserError for other versions than those of the driver.
    """
    expected = _expected()
    if expected is None or expected in _verified:
        return
    content = json.loads(expected)
    if difference := different_versions(content):
        raise other_versions([difference])
    for path in map(_path, content["required"]):
        if (reason := path.difference()) is not None:
            raise path.error([describe(reason, content["host"])])
    _verified.add(expected)


def shares_state() -> bool:
    """Returns whether the state directory of the driver is at its path on this machine."""
    expected = _expected()
    if expected is None:
        return True
    if expected not in _shares_state:
        state = _path(json.loads(expected)["state"])
        _shares_state[expected] = state.difference() is None
    return _shares_state[expected]


def describe(reason: str, driver: str) -> str:
    """Returns the reason that a path is not shared, with both hosts."""
    return f"executor on {socket.gethostname()}, driver on {driver}: {reason}"


_verified: set[str] = set()
"""The paths that this process has compared."""
_shares_state: dict[str, bool] = {}


def _expected() -> str | None:
    context = TaskContext.get()
    return None if context is None else context.getLocalProperty(_PATHS)


def _path(values: Mapping[str, Any]) -> SharedPath:
    return SharedPath(**values)


def _head(path: Path, length: int) -> bytes:
    with path.open("rb") as file:
        return file.read(length)


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
