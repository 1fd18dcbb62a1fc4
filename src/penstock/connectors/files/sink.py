"""The files sink."""

from __future__ import annotations

import errno
import io
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
import structlog

from penstock.connectors.files.compression import SUFFIX
from penstock.connectors.files.config import FilesSinkConfig
from penstock.connectors.files.directories import Directories
from penstock.connectors.files.listing import parse_location
from penstock.connectors.files.merging import Merger, select_due_parts
from penstock.connectors.files.staging import (
    HIDDEN,
    Ledger,
    Part,
    StagingArea,
    group_parts,
    sink_name,
    staging_name,
)
from penstock.connectors.files.storage import Storage
from penstock.connectors.files.writer import FileLayout, FilesWriter
from penstock.core.errors import OptionError, PlanError, raise_all
from penstock.sdk import (
    BatchId,
    Capability,
    FileFormat,
    Receipt,
    Sink,
)
from penstock.sdk.columns.checks import check_column, check_columns
from penstock.sdk.object_client import check_url

MAX_FILE_BYTES = 1_000_000_000
"""The maximum size of a file without `roll`."""
logger = structlog.get_logger(__name__)
_locks: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)


class FilesSink(Sink[FilesSinkConfig]):
    """Writes files to a directory, exactly once.

    Each partition of a batch writes a file. Files become visible when they are complete and their
    batch is committed, so incomplete files, duplicates and uncommitted rows are never visible to
    readers. Several pipelines, or runs of a pipeline with different `runtime.state`, can write to
    one directory. Hidden files of a deleted state directory remain in `.penstock` and are logged.
    With `append` the rows of all batches are in one file, also exactly once.

    ```yaml
    type: files
    from: hourly
    path: out/hourly
    format: parquet
    partition_by: [carrier]
    roll: {max_size: 128 MB, interval: 1 minute}
    ```
    """

    acknowledges = "its files are complete and visible"
    capabilities = frozenset({Capability.ROWS, Capability.ORDERED, Capability.EXACTLY_ONCE})
    storage: Storage | None = None
    """The storage, if it differs from that of `path`."""
    _last_tick = 0.0

    def default_format(self) -> str:
        return "json"

    def check_schema(self, columns: pa.Schema) -> None:
        time_ = self.config.partition_time
        errors = list(check_columns(self.config.partition_by, columns, "partition_by"))
        if time_ is not None:
            errors += check_column(
                time_.column, columns, "partition_time", "column",
                accepts=pa.types.is_timestamp, expected="Set column to one of the type TIMESTAMP.",
            )  # fmt: skip
        raise_all(errors)
        unstored = self._directories().unstored
        stored = pa.schema([field for field in columns if field.name not in unstored])
        if self.config.append and not self._file_format().concatenable:
            raise OptionError.of(
                "append", message="append requires a format without header and footer",
                hint="Set another format, such as json. Or write a directory: remove append (in "
                "scripts of Arroyo use the connector filesystem).",
            )  # fmt: skip
        writer = self._file_format().file_writer(io.BytesIO(), stored)
        writer.write(pa.RecordBatch.from_pylist([], stored))
        writer.close()

    def validate(self) -> None:
        super().validate()
        check_url(self.config.path, self.config.storage)

    def check(self) -> None:
        self._file_format()
        storage, root = self._storage_and_root()
        probe = f"{root.rstrip('/')}/.penstock/{self._name}/probe"
        with storage.convert_errors("write to", storage.url(root)):
            storage.probe(probe)
            if self.config.append and storage.is_directory(f"{root}/{self._file_name}"):
                raise IsADirectoryError(errno.EISDIR, "expected a file, found a directory")

    def writer(
        self, client: None, batch: BatchId, partition: int, schema: pa.Schema
    ) -> FilesWriter:
        file_format = self._file_format()
        codec, suffix = self._codec(), self._suffix()
        needs_schema = self.config.roll is not None and not file_format.concatenable
        layout = FileLayout(
            file_format, codec, suffix, self._directories(), MAX_FILE_BYTES, needs_schema,
            self.config.prefix, self.config.suffix or "",
        )  # fmt: skip
        return FilesWriter(self.staging_area(batch.query), layout, batch.number, partition, schema)

    def commit(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        """Commits a batch once. Repeated calls discard their parts."""
        with self._exclusive():
            area = self.staging_area(batch.query)
            ledger = area.ledger()
            if batch.number > ledger.batch:
                ordered = sorted(receipts, key=lambda receipt: int(receipt["partition"]))
                parts = [Part(**file) for receipt in ordered for file in receipt["files"]]
                begun = replace(ledger, batch=batch.number, content=batch.content)
                ledger = self._commit(area, begun, parts)
            else:
                area.publish(ledger)
            area.clean_up(ledger, batch.number)

    def last_batch(self, query: str) -> BatchId | None:
        with self._exclusive():
            ledger = self.staging_area(query).ledger()
        return BatchId(query, ledger.batch, ledger.content) if ledger.batch >= 0 else None

    def recover(self) -> None:
        with self._exclusive():
            for area in self._areas():
                ledger = area.ledger()
                area.publish(ledger)
                area.clean_up(ledger)
            self._log_foreign_files()

    def tick(self) -> None:
        roll = self.config.roll
        if (
            roll is None
            or roll.interval is None
            or time.time() - self._last_tick < roll.interval / 10
        ):
            return
        self._last_tick = time.time()
        with self._exclusive():
            for area in self._areas():
                ledger = area.ledger()
                if self._select_due(ledger.staged)[0]:
                    area.clean_up(self._commit(area, ledger, ()))
                else:
                    area.publish(ledger)

    def complete(self) -> None:
        with self._exclusive():
            for area in self._areas():
                ledger = area.ledger()
                if ledger.staged:
                    ledger = self._commit(area, ledger, (), all_parts=True)
                else:
                    area.publish(ledger)
                area.clean_up(ledger)

    def _commit(
        self, area: StagingArea, ledger: Ledger, parts: Sequence[Part], all_parts: bool = False
    ) -> Ledger:
        """Commits and publishes the staged and the new parts that are due."""
        area.publish(ledger)
        due, staged = self._select_due([*ledger.staged, *parts], all_parts)
        merger = Merger(area, self._file_format(), self._codec(), self._suffix())
        moves = tuple(merger.merge(ledger.batch, due, self.config.prefix))
        append_at = None
        if self.config.append:
            append_at = area.size(self._file_name)
            moves = tuple((source, self._file_name) for source, _ in moves)
        committed = replace(ledger, moves=moves, staged=tuple(staged), append_at=append_at)
        area.commit(committed)
        moved_paths = {source for source, _ in moves}
        area.discard(part for group in due for part in group if part.temp not in moved_paths)
        return committed

    def _select_due(
        self, parts: Sequence[Part], all_parts: bool = False
    ) -> tuple[list[list[Part]], list[Part]]:
        roll = self.config.roll
        if self.config.append:
            return group_parts(parts), []
        if roll is None:
            return [[part] for part in parts], []
        return select_due_parts(
            parts, roll.max_size, 0.0 if all_parts else roll.interval, time.time()
        )

    def _log_foreign_files(self) -> None:
        """Logs hidden files of other owners of this sink, which may be running."""
        storage, root = self._storage_and_root()
        ownerless = sink_name(self.context.pipeline, self.context.node)
        for name in storage.names(f"{root}/{HIDDEN}"):
            directory = f"{root.rstrip('/')}/{HIDDEN}/{name}"
            if name == self._name or not f"{name}-".startswith(f"{ownerless}-"):
                continue
            files = storage.walk(directory, hidden=True)
            if any(entry.path.endswith(".tmp") for entry in files):
                logger.warning(
                    "found hidden files of another state directory", path=storage.url(directory)
                )

    @property
    def _name(self) -> str:
        context = self.context
        return sink_name(context.pipeline, context.node, context.owner)

    def _storage_and_root(self) -> tuple[Storage, str]:
        location = parse_location(self.config.path, self.config.storage)
        if location.pattern is not None:
            raise OptionError.of("path", message="expected a directory, found a pattern")
        if self.config.path.startswith(("hdfs:", "viewfs:")):
            raise OptionError.of("path", message="HDFS is read-only: expected another file system")
        root = location.root
        if self.config.append:
            root = root.rpartition("/")[0] or "/"
        return self.storage or location.storage, root

    @property
    def _file_name(self) -> str:
        """The name of the file that `append` extends."""
        return self.config.path.rpartition("/")[2]

    def staging_area(self, query: str) -> StagingArea:
        """Returns the staging area of a query."""
        storage, root = self._storage_and_root()
        context = self.context
        name = staging_name(context.pipeline, context.node, context.owner, query)
        return StagingArea(storage, root, self._name, name)

    def _areas(self) -> Iterator[StagingArea]:
        return StagingArea.list_areas(*self._storage_and_root(), self._name)

    def _directories(self) -> Directories:
        return Directories(tuple(self.config.partition_by), self.config.partition_time)

    def _codec(self) -> str | None:
        return None if self.config.compression == "none" else self.config.compression

    def _suffix(self) -> str:
        compression = SUFFIX.get(self._codec() or "", "")
        return f".{self._file_format().extension.lstrip('.')}{compression}"

    def _file_format(self) -> FileFormat[Any]:
        if not isinstance(self.format, FileFormat):
            raise PlanError("the format does not support files")
        if self.format.needs_seek and self._codec() is not None:
            raise PlanError(
                "the format has internal compression",
                hint="Remove the option compression of the sink.",
            )
        return self.format

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Serializes access in this process and converts errors of the storage."""
        storage, root = self._storage_and_root()
        url = storage.url(root)
        with _locks[f"{url} {self._name}"], storage.convert_errors("write to", url):
            yield
