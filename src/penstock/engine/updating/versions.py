"""Versions of the state of updating operators: the files of all buckets after a batch.

The version of a batch is written after all sinks have written the batch, so a repeated batch begins
with the same state.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from penstock.core.errors import StateError
from penstock.core.files.durable import replace_durably
from penstock.engine.checkpoints.state_schema import OperatorSchema

FOLDER = "updating"
"""The state of the updating operators of a query, in its checkpoint."""
BUCKETS = 16
"""The minimum number of buckets of keys."""
_KEPT_VERSIONS = 2
SNAPSHOT, CHANGES = "snapshot", "changes"
"""The kinds of files of a bucket, which are parts of their names."""


@dataclass(frozen=True)
class StateFile:
    """A file of a bucket: its path in the state directory, and its size in bytes.

    `rows` is the number of different rows of the bucket after the batch of the file.
    """

    path: str
    size: int
    rows: int = 0

    @property
    def is_snapshot(self) -> bool:
        """Whether the file has all rows of the bucket, not only the changes of a batch."""
        return Path(self.path).suffixes[0] == f".{SNAPSHOT}"


Chain = tuple[StateFile, ...]
"""The files of a bucket: a snapshot, unless there is none yet, and changes in their order."""


@dataclass(frozen=True)
class StateVersion:
    """The state after a batch: the files of each bucket of each operator, and its schema.

    `time` is the time of the batch in milliseconds, 0 before the first one. With `is_new` no batch
    was computed.
    """

    batch: int
    buckets: int
    chains: Mapping[str, Mapping[int, Chain]] = field(default_factory=dict)
    time: int = 0
    schemas: Mapping[str, OperatorSchema] = field(default_factory=dict)
    is_new: bool = False

    @property
    def rows(self) -> int:
        """The number of different rows in the state."""
        return sum(chain[-1].rows for chain in self._chains())

    @property
    def bytes(self) -> int:
        """The size of the files of the state."""
        return sum(file.size for chain in self._chains() for file in chain)

    def _chains(self) -> list[Chain]:
        return [chain for buckets in self.chains.values() for chain in buckets.values()]


class OperatorStateDirectory:
    """The state of the updating operators of a query, on the driver.

    A new state has this number of buckets.
    """

    def __init__(self, path: Path, buckets: int = BUCKETS) -> None:
        self.path, self._buckets = path, buckets

    def before(self, batch: int) -> StateVersion:
        """Returns the state before a batch. Raises StateError if it is damaged."""
        if batch == 0:
            return StateVersion(-1, self._buckets, is_new=True)
        return self._load(batch - 1)

    @property
    def last(self) -> int | None:
        """The number of the last batch with a state; None without one."""
        return max((int(path.stem) for path in self.path.glob("*.json")), default=None)

    def copy_to_next(self, batch: int) -> None:
        """Copies the state after a batch to the next batch, which reads no rows."""
        if (self.path / f"{batch}.json").exists():
            self.save(replace(self._load(batch), batch=batch + 1))

    def _load(self, batch: int) -> StateVersion:
        path = self.path / f"{batch}.json"
        try:
            stored = json.loads(path.read_text("utf-8"))
            chains = {
                operator: {
                    int(bucket): tuple(StateFile(*file) for file in chain)
                    for bucket, chain in buckets.items()
                }
                for operator, buckets in stored["chains"].items()
            }
            schemas = stored.get("schemas", {}).items()
            return StateVersion(
                batch, stored["buckets"], chains, stored["time"],
                {operator: OperatorSchema.parse(schema) for operator, schema in schemas},
                stored.get("is_new", False),
            )  # fmt: skip
        except FileNotFoundError:
            raise damaged(path, "is missing") from None
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise damaged(path, f"cannot be read: {error!r}") from error

    def save(self, version: StateVersion) -> None:
        """Makes the state after a batch durable, and removes files that no kept version names."""
        stored = {
            "buckets": version.buckets,
            "time": version.time,
            "is_new": version.is_new,
            "schemas": {operator: s.as_dict() for operator, s in version.schemas.items()},
            "chains": {
                operator: {
                    str(bucket): [[file.path, file.size, file.rows] for file in chain]
                    for bucket, chain in buckets.items()
                }
                for operator, buckets in version.chains.items()
            },
        }
        replace_durably(self.path / f"{version.batch}.json", json.dumps(stored))
        self._remove_unused(version.batch)

    def _remove_unused(self, batch: int) -> None:
        for path in self.path.glob("*.json"):
            if int(path.stem) <= batch - _KEPT_VERSIONS:
                path.unlink()
        versions = [self._load(int(path.stem)) for path in self.path.glob("*.json")]
        used = {
            file.path
            for version in versions
            for chains in version.chains.values()
            for chain in chains.values()
            for file in chain
        }
        for directory in self.path.glob("*/*"):
            files = list(directory.iterdir())
            unused = [file for file in files if str(file.relative_to(self.path)) not in used]
            if len(unused) == len(files):
                shutil.rmtree(directory)
            else:
                for file in unused:
                    file.unlink()


def damaged(path: Path, problem: str) -> StateError:
    """Returns the error of a file of the state."""
    return StateError(
        f"the state of an updating query is damaged: {path} {problem}",
        code="corrupt-state",
        hint="Restore the state directory from a backup, or reset the state with --fresh.",
    )
