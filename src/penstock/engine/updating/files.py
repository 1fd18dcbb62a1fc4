"""Files of the state of updating operators: changes and snapshots by bucket, and their versions.

The state of a query is a directory in its checkpoint. A batch writes the changes of each bucket
that it affects to a new file, or all rows of the bucket once its changes have as many bytes as the
snapshot before them. The version of a batch names the files of all buckets. It is written after
all sinks have written the batch, so a repeated batch begins with the same state.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from penstock.core.errors import StateError
from penstock.core.files.durable import (
    create_directory_durably,
    rename_durably,
    replace_durably,
    sync,
)
from penstock.engine.checkpoints.state_schema import OperatorSchema
from penstock.engine.spark_session.shared_state import verify_state
from penstock.engine.updating.rows import Merge, RowState, consolidate, with_fields

MAX_CHAIN = 20
"""The number of files of a bucket after which a snapshot is written."""
_KEPT_VERSIONS = 2
_CACHED_BYTES = 256 << 20
_SNAPSHOT, _CHANGES = "snapshot", "changes"
_ROWS = b"rows"
"""The key of the metadata with the number of rows of a bucket."""


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
        return Path(self.path).suffixes[0] == f".{_SNAPSHOT}"


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
    """The state of the updating operators of a query, on the driver."""

    def __init__(self, path: Path, buckets: int) -> None:
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
            raise _damaged(path, "is missing") from None
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise _damaged(path, f"cannot be read: {error!r}") from error

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


@dataclass(frozen=True)
class BucketFiles:
    """The files of one operator for one attempt of a batch, in the processes that write them.

    `attempt` is the directory of the new files, `chains` are the files before the batch.
    """

    directory: str
    attempt: str
    chains: Mapping[int, Chain]

    @classmethod
    def of(cls, directory: Path, operator: str, batch: int, version: StateVersion) -> BucketFiles:
        """Returns the files of an operator for a new attempt of a batch."""
        attempt = f"{operator}/{batch}-{uuid4().hex[:8]}"
        return cls(str(directory), attempt, version.chains.get(operator, {}))

    def load(
        self, bucket: int, merge: Merge = consolidate, columns: pa.Schema | None = None
    ) -> RowState:
        """Returns the rows of a bucket before the batch.

        They have the fields of `columns`, null where the stored rows lack them. Raises StateError
        if a file is damaged, or if the machine does not share the directory.
        """
        verify_state()
        chain = self.chains.get(bucket, ())
        cached = cache.take((self.directory, self._operator, bucket))
        known, state = cached or ((), RowState(merge=merge))
        if known != chain[: len(known)]:
            known, state = (), RowState(merge=merge)
        state.chunks = [with_fields(chunk, columns) for chunk in state.chunks]
        for file in chain[len(known) :]:
            state.add(with_fields(_read(Path(self.directory) / file.path, file.size), columns))
        return state

    def save(self, bucket: int, state: RowState, changes: pa.Table, added: int) -> None:
        """Writes the changes of a bucket, or a snapshot, and keeps the rows for the next batch.

        `state` contains the changes, which have increased the number of rows by `added`.
        """
        chain = self.chains.get(bucket, ())
        kind, rows = _CHANGES, changes
        if chain and _needs_snapshot(chain, changes.nbytes):
            kind, rows = _SNAPSHOT, state.table()
        count = added + (chain[-1].rows if chain else 0)
        path = f"{self.attempt}/{bucket}.{kind}.arrow"
        counted = rows.replace_schema_metadata({**(rows.schema.metadata or {}), _ROWS: str(count)})
        size = _write(Path(self.directory) / path, counted)
        new = StateFile(path, size, count)
        chain = (new,) if kind == _SNAPSHOT else (*chain, new)
        cache.put((self.directory, self._operator, bucket), chain, state)

    def written(self) -> dict[int, Chain]:
        """Returns the files of all buckets after the batch, from a listing of the new files."""
        chains = dict(self.chains)
        directory = Path(self.directory) / self.attempt
        for path in directory.glob("*.arrow") if directory.exists() else ():
            bucket, kind = path.name.split(".")[:2]
            name, size = f"{self.attempt}/{path.name}", path.stat().st_size
            file = StateFile(name, size, _count(path))
            before = () if kind == _SNAPSHOT else self.chains.get(int(bucket), ())
            chains[int(bucket)] = (*before, file)
        return chains

    @property
    def _operator(self) -> str:
        return self.attempt.split("/")[0]


class RowCache:
    """The rows of the buckets that this process has computed, the least recently used first.

    A key is a directory, an operator in it and the number of a bucket.
    """

    def __init__(self) -> None:
        self.entries: dict[tuple[str, str, int], tuple[Chain, RowState]] = {}

    def take(self, key: tuple[str, str, int]) -> tuple[Chain, RowState] | None:
        """Removes and returns the rows of a bucket with the files that contain them."""
        return self.entries.pop(key, None)

    def put(self, key: tuple[str, str, int], chain: Chain, state: RowState) -> None:
        """Adds the rows of a bucket. Removes others that exceed the size of the cache."""
        self.entries[key] = chain, state
        total = sum(state.bytes for _, state in self.entries.values())
        while total > _CACHED_BYTES and len(self.entries) > 1:
            total -= self.entries.pop(next(iter(self.entries)))[1].bytes


cache = RowCache()


def _needs_snapshot(chain: Chain, size: int) -> bool:
    snapshot = chain[0].size if chain[0].is_snapshot else 0
    changes = sum(file.size for file in chain if not file.is_snapshot)
    return len(chain) >= MAX_CHAIN or (snapshot > 0 and changes + size > snapshot)


def _count(path: Path) -> int:
    with pa.memory_map(str(path)) as file:
        return int(pa.ipc.open_file(file).schema.metadata[_ROWS])


def _read(path: Path, size: int) -> pa.Table:
    try:
        found = path.stat().st_size
        if found != size:
            raise _damaged(path, f"has {found} bytes instead of {size}")
        with pa.memory_map(str(path)) as file:
            return pa.ipc.open_file(file).read_all()
    except FileNotFoundError:
        raise _damaged(path, "is missing") from None
    except (OSError, pa.ArrowException) as error:
        raise _damaged(path, f"cannot be read: {error}") from error


def _damaged(path: Path, problem: str) -> StateError:
    return StateError(
        f"the state of an updating query is damaged: {path} {problem}",
        code="corrupt-state",
        hint="Restore the state directory from a backup, or reset the state with --fresh.",
    )


def _write(path: Path, rows: pa.Table) -> int:
    """Writes a file atomically and durably. Returns its size."""
    create_directory_durably(path.parent)
    temporary = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
    with pa.OSFile(str(temporary), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
        writer.write_table(rows)
    rename_durably(temporary, path)
    sync(path.parent)
    return path.stat().st_size
