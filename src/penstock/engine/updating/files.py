"""Files of the state of updating operators: changes and snapshots by bucket.

The state of a query is a directory in its checkpoint. A batch writes the changes of each bucket
that it affects to a new file, or all rows of the bucket once its changes have as many bytes as the
snapshot before them. The version of a batch names the files of all buckets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from penstock.core.files.durable import create_directory_durably, rename_durably, sync
from penstock.engine.driver_files.client import DriverFiles
from penstock.engine.driver_files.server import served
from penstock.engine.spark_session.shared_paths import shares_state, verify_paths
from penstock.engine.updating.rows import Merge, RowState, consolidate, with_fields
from penstock.engine.updating.versions import (
    CHANGES,
    SNAPSHOT,
    Chain,
    StateFile,
    StateVersion,
    damaged,
)

MAX_CHAIN = 20
"""The number of files of a bucket after which a snapshot is written."""
_CACHED_BYTES = 256 << 20
_ROWS = b"rows"
"""The key of the metadata with the number of rows of a bucket."""


@dataclass(frozen=True)
class BucketFiles:
    """The files of one operator for one attempt of a batch, in the processes that write them.

    `attempt` is the directory of the new files, `chains` are the files before the batch. A machine
    that does not share the state reads and writes the files by `driver`.
    """

    directory: str
    attempt: str
    chains: Mapping[int, Chain]
    driver: DriverFiles | None = None

    @classmethod
    def of(cls, directory: Path, operator: str, batch: int, version: StateVersion) -> BucketFiles:
        """Returns the files of an operator for a new attempt of a batch."""
        attempt = f"{operator}/{batch}-{uuid4().hex[:8]}"
        return cls(str(directory), attempt, version.chains.get(operator, {}), served(directory))

    def load(
        self, bucket: int, merge: Merge = consolidate, columns: pa.Schema | None = None
    ) -> RowState:
        """Returns the rows of a bucket before the batch.

        They have the fields of `columns`, null where the stored rows lack them. Raises StateError
        if a file is damaged, or if the machine does not share it.
        """
        verify_paths()
        chain = self.chains.get(bucket, ())
        cached = cache.take((self.directory, self._operator, bucket))
        known, state = cached or ((), RowState(merge=merge))
        if known != chain[: len(known)]:
            known, state = (), RowState(merge=merge)
        state.chunks = [with_fields(chunk, columns) for chunk in state.chunks]
        for file in chain[len(known) :]:
            state.add(with_fields(self._read(file), columns))
        return state

    def _read(self, file: StateFile) -> pa.Table:
        path = Path(self.directory) / file.path
        if self.driver is None or shares_state():
            return read_rows(path, file.size)
        return parse_rows(self.driver.read(str(path)), path, file.size)

    def save(self, bucket: int, state: RowState, changes: pa.Table, added: int) -> None:
        """Writes the changes of a bucket, or a snapshot, and keeps the rows for the next batch.

        `state` contains the changes, which have increased the number of rows by `added`.
        """
        chain = self.chains.get(bucket, ())
        kind, rows = CHANGES, changes
        if chain and _needs_snapshot(chain, changes.nbytes):
            kind, rows = SNAPSHOT, state.table()
        count = added + (chain[-1].rows if chain else 0)
        path = f"{self.attempt}/{bucket}.{kind}.arrow"
        new = self._write(path, rows, count)
        chain = (new,) if kind == SNAPSHOT else (*chain, new)
        cache.put((self.directory, self._operator, bucket), chain, state)

    def _write(self, name: str, rows: pa.Table, count: int) -> StateFile:
        if self.driver is None or shares_state():
            return write_rows(Path(self.directory), name, rows, count)
        content = pa.BufferOutputStream()
        write_content(content, rows, count)
        buffer = content.getvalue()
        self.driver.write(str(Path(self.directory) / name), buffer.to_pybytes())
        return StateFile(name, buffer.size, count)

    def written(self) -> dict[int, Chain]:
        """Returns the files of all buckets after the batch, from a listing of the new files."""
        chains = dict(self.chains)
        directory = Path(self.directory) / self.attempt
        for path in directory.glob("*.arrow") if directory.exists() else ():
            bucket, kind = path.name.split(".")[:2]
            name, size = f"{self.attempt}/{path.name}", path.stat().st_size
            file = StateFile(name, size, _count(path))
            before = () if kind == SNAPSHOT else self.chains.get(int(bucket), ())
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
        self._sizes: dict[tuple[str, str, int], int] = {}

    def take(self, key: tuple[str, str, int]) -> tuple[Chain, RowState] | None:
        """Removes and returns the rows of a bucket with the files that contain them."""
        self._sizes.pop(key, None)
        return self.entries.pop(key, None)

    def put(self, key: tuple[str, str, int], chain: Chain, state: RowState) -> None:
        """Adds the rows of a bucket. Removes others that exceed the size of the cache."""
        self.entries[key], self._sizes[key] = (chain, state), state.bytes
        while sum(self._sizes.values()) > _CACHED_BYTES and len(self.entries) > 1:
            self.take(next(iter(self.entries)))


cache = RowCache()


def _needs_snapshot(chain: Chain, size: int) -> bool:
    snapshot = chain[0].size if chain[0].is_snapshot else 0
    changes = sum(file.size for file in chain if not file.is_snapshot)
    return len(chain) >= MAX_CHAIN or (snapshot > 0 and changes + size > snapshot)


def _count(path: Path) -> int:
    with pa.memory_map(str(path)) as file:
        return int(pa.ipc.open_file(file).schema.metadata[_ROWS])


def read_rows(path: Path, size: int) -> pa.Table:
    """Returns the rows of a file of this size. Raises StateError if it is damaged."""
    try:
        found = path.stat().st_size
        if found != size:
            raise damaged(path, f"has {found} bytes instead of {size}")
        with pa.memory_map(str(path)) as file:
            return pa.ipc.open_file(file).read_all()
    except FileNotFoundError:
        raise damaged(path, "is missing") from None
    except (OSError, pa.ArrowException) as error:
        raise damaged(path, f"cannot be read: {error}") from error


def parse_rows(content: bytes, path: Path, size: int) -> pa.Table:
    """Returns the rows of a file of this size with this content. Raises StateError if damaged."""
    if len(content) != size:
        raise damaged(path, f"has {len(content)} bytes instead of {size}")
    try:
        return pa.ipc.open_file(pa.py_buffer(content)).read_all()
    except pa.ArrowException as error:
        raise damaged(path, f"cannot be read: {error}") from error


def write_rows(directory: Path, name: str, rows: pa.Table, count: int) -> StateFile:
    """Writes a file of a state directory atomically and durably.

    `count` is the number of different rows of the bucket, with those of earlier files.
    """
    path = directory / name
    create_directory_durably(path.parent)
    temporary = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
    with pa.OSFile(str(temporary), "wb") as file:
        write_content(file, rows, count)
    rename_durably(temporary, path)
    sync(path.parent)
    return StateFile(name, path.stat().st_size, count)


def write_content(file: pa.NativeFile, rows: pa.Table, count: int) -> None:
    """Writes the content of a file with rows, and `count`."""
    rows = rows.replace_schema_metadata({**(rows.schema.metadata or {}), _ROWS: str(count)})
    with pa.ipc.new_file(file, rows.schema) as writer:
        writer.write_table(rows)
