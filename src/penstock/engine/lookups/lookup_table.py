"""Lookup tables: tables that are read again during a run, with one content for each batch.

The content of a table is a file below the checkpoint of the query that reads the table. Tasks and
the driver read it there. The first reader of a batch updates the content and records its version
for the batch, so that all tasks and all attempts of the batch read the same rows.
"""

from __future__ import annotations

import copy
import fcntl
import json
import os
import pickle
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.core.error_codec import encode_errors
from penstock.core.errors import ConnectError, PenstockError, Transient
from penstock.core.files.private_files import create_directory, open_private
from penstock.engine.driver_files.client import DriverFiles
from penstock.engine.lookups.lookup_rows import apply_changes
from penstock.engine.sources.source import SourceTask
from penstock.engine.spark_session.shared_paths import verify_paths
from penstock.engine.tasks import task as spark_task
from penstock.sdk import ReplayableSource

LOOKUPS = "lookups"
"""The directory of the tables of a query, below its checkpoint."""
ROWS = 50_000
"""The number of rows of a batch of a table for Spark."""
_KEPT_BATCHES = 3
_ATTEMPTS = 3
"""The attempts to read a table that changes while it is read."""


@dataclass
class LookupState:
    """The record of the content of a table.

    `version` numbers the contents, and `batches` has the version of the latest batches. `source` is
    the version of the content in the outside system, or None: then `offset` is the end of the
    records in the content. The content belongs to one run, and was last compared at `time`.
    """

    run: str = ""
    version: int = 0
    offset: Mapping[str, Any] | None = None
    source: Any = None
    time: float = 0.0
    batches: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class LookupTask:
    """A lookup table of a query, as a function for `mapInArrow` that returns its rows.

    `columns` are those of the table, and `operation` is the column of the source's rows that holds
    the operation. A content is used for at least `ttl` seconds. Tasks of a cluster have it from
    `driver`.
    """

    source: SourceTask
    columns: pa.Schema
    operation: str | None
    ttl: float
    directory: str
    run_id: str
    driver: DriverFiles | None = None

    @encode_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        verify_paths()
        for _ in batches:
            pass
        batch = spark_task.batch_number()
        if self.driver is None:
            table = self.table(batch, isolated=spark_task.is_retry())
        else:
            table = self.driver.table(self.directory, batch)
        yield from table.to_batches(max_chunksize=ROWS)

    def table(self, batch: int | None = None, *, isolated: bool = False) -> pa.Table:
        """Returns the content for a batch; without a batch the last content.

        With `isolated` a decoder that crashes does not end this process.
        """
        with self._locked():
            state = read_state(Path(self.directory))
            version = state.batches.get(str(batch))
            if version is None or not self._path(version).exists():
                if batch is not None or state.run != self.run_id:
                    self._update(state, isolated)
                version = state.version
                if batch is not None:
                    state.batches[str(batch)] = version
                self._write_state(state)
            with pa.memory_map(str(self._path(version))) as file:
                return pa.ipc.open_file(file).read_all()

    def _update(self, state: LookupState, isolated: bool) -> None:
        """Makes the current rows of the source the content of `state`."""
        is_new = state.run != self.run_id
        if not is_new and time.time() - state.time < self.ttl:
            return
        try:
            source = OPEN_SOURCES.get(self.directory, self.run_id, self.source.source)
            version = source.table_version()
            if version is not None:
                if is_new or version != state.source:
                    self._read_whole(state, source, version, isolated)
            else:
                self._read_changes(state, source, None if is_new else state.offset, isolated)
        except ConnectError as error:
            OPEN_SOURCES.close(self.directory)
            if is_new or isinstance(error, Transient):
                raise
            raise Transient(error.message, code=error.code, hint=error.hint) from error
        except BaseException:
            OPEN_SOURCES.close(self.directory)
            raise
        state.run, state.time = self.run_id, time.time()

    def _read_whole(
        self, state: LookupState, source: ReplayableSource[Any], version: Any, isolated: bool
    ) -> None:
        """Reads all rows of a source, again if its content changes meanwhile."""
        for _ in range(_ATTEMPTS):
            fresh = pickle.loads(pickle.dumps(source))
            try:
                rows, _ = self._read(fresh, None, state.version + 1, isolated)
            except PenstockError:
                if source.table_version() == version:
                    raise
                rows = None
            finally:
                fresh.close()
            latest = source.table_version()
            if rows is not None and latest == version:
                state.source = version
                self._write_content(state, self._empty(), rows)
                return
            version = latest
        raise Transient(
            f'lookup table "{self.source.spool.node}" changes while it is read',
            code="table-changes",
            hint="Replace its files by renaming complete files.",
        )

    def _read_changes(
        self,
        state: LookupState,
        source: ReplayableSource[Any],
        offset: Mapping[str, Any] | None,
        isolated: bool,
    ) -> None:
        """Applies the records after `offset`, of a new table all records."""
        changes, end = self._read(source, offset, state.version + 1, isolated)
        if offset is None or len(changes):
            rows = self._empty() if offset is None else self._content(state.version)
            self._write_content(state, rows, changes)
        state.offset = end

    def _read(
        self,
        source: ReplayableSource[Any],
        offset: Mapping[str, Any] | None,
        version: int,
        isolated: bool,
    ) -> tuple[pa.Table, Mapping[str, Any]]:
        """Returns the records of a source after `offset`, and the offset after them."""
        task = copy.copy(self.source)
        object.__setattr__(task, "source", source)
        start = source.initial_offset() if offset is None else offset
        end = source.latest_offset(start)
        batches: list[pa.RecordBatch] = []
        if end != start:
            dead_letters = task.spool.begin(version, "table")
            for partition in source.partitions(start, end):
                batches += task.read(partition, dead_letters, isolated)
            dead_letters.close()
        return pa.Table.from_batches(batches, schema=task.rows), end

    def _write_content(self, state: LookupState, rows: pa.Table, changes: pa.Table) -> None:
        table = apply_changes(rows, changes, self.source.source.primary_key, self.operation)
        state.version += 1
        path = self._path(state.version)
        hidden = path.with_name(f".{path.name}")
        with open_private(hidden, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=ROWS)
        hidden.replace(path)

    def _write_state(self, state: LookupState) -> None:
        """Writes the record, and removes contents that no batch needs."""
        latest = sorted(state.batches, key=int)[-_KEPT_BATCHES:]
        state.batches = {batch: state.batches[batch] for batch in latest}
        directory = Path(self.directory)
        hidden = directory / f".{_RECORD}"
        with open_private(hidden, "w") as file:
            json.dump(asdict(state), file)
        hidden.replace(directory / _RECORD)
        needed = {self._path(version) for version in (state.version, *state.batches.values())}
        for path in directory.glob("*.arrow"):
            if path not in needed:
                path.unlink()

    def _content(self, version: int) -> pa.Table:
        with pa.memory_map(str(self._path(version))) as file:
            return pa.ipc.open_file(file).read_all()

    def _empty(self) -> pa.Table:
        return self.columns.empty_table()

    def _path(self, version: int) -> Path:
        return Path(self.directory) / f"{version}.arrow"

    @contextmanager
    def _locked(self) -> Iterator[None]:
        directory = Path(self.directory)
        create_directory(directory)
        with open_private(directory / "lock", "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


_RECORD = "table.json"


def read_state(directory: Path) -> LookupState:
    """Returns the record of a table; an empty one if there is none."""
    with suppress(OSError, ValueError, TypeError):
        return LookupState(**json.loads((directory / _RECORD).read_text()))
    return LookupState()


class OpenSources:
    """The sources of lookup tables that this process has opened, kept between batches."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[str, ReplayableSource[Any]]] = {}
        self._pid = os.getpid()

    def get(self, directory: str, run: str, source: ReplayableSource[Any]) -> ReplayableSource[Any]:
        """Returns a copy of `source` that is kept open for the run."""
        if self._pid != os.getpid():
            self._pid, self._open = os.getpid(), {}
        kept = self._open.get(directory)
        if kept is not None and kept[0] == run:
            return kept[1]
        self.close(directory)
        opened: ReplayableSource[Any] = pickle.loads(pickle.dumps(source))
        self._open[directory] = run, opened
        return opened

    def close_below(self, directory: Path) -> None:
        """Closes the sources of the tables in a directory. Errors are ignored."""
        for table in list(self._open):
            if Path(table).is_relative_to(directory):
                self.close(table)

    def close(self, directory: str) -> None:
        """Closes the source of a table. Errors are ignored."""
        _, source = self._open.pop(directory, ("", None))
        if source is not None:
            with suppress(Exception):
                source.close()


OPEN_SOURCES = OpenSources()
