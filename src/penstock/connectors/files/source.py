"""The files source."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from penstock.connectors.files.archive import Archive
from penstock.connectors.files.config import FilesSourceConfig, Move
from penstock.connectors.files.discovered import DiscoveredFiles
from penstock.connectors.files.discovery import Discovery
from penstock.connectors.files.file_format import check_format, format_of_paths
from penstock.connectors.files.file_range import FileRange
from penstock.connectors.files.filesystem import open_storage
from penstock.connectors.files.inference import infer_columns
from penstock.connectors.files.listing import Location, parse_location
from penstock.connectors.files.locating import check_unchanged, locate
from penstock.connectors.files.notifications.receiver import Receiver
from penstock.connectors.files.path_columns import METADATA, path_metadata
from penstock.connectors.files.reader import FileReader
from penstock.connectors.files.segments import SpannedLines
from penstock.connectors.files.storage import Storage
from penstock.core.errors import ConnectError, MissingExtra, Permanent, PlanError, Transient
from penstock.sdk import (
    Capability,
    FileFormat,
    Offset,
    Read,
    ReplayableSource,
)
from penstock.sdk.file_partitions import PARTITION_BYTES, divide_files
from penstock.sdk.object_client import check_url

SAMPLED_FILES = 3
CHECKED_FILES = 100
"""The number of files of which a check reads the header."""


class FilesSource(ReplayableSource[FilesSourceConfig]):
    """Reads files on a disk or in an object store, each file once, in the order of discovery.

    Large uncompressed files of lines are split into ranges; small files share a partition. The
    discovered files are recorded in the state directory. A file that was modified or deleted
    between discovery and reading is handled by `on_changed` and `on_missing`. With `lookup: true` a
    stream is joined with the rows of all files, which are read again when a file changes.

    ```yaml
    type: files
    path: data/flights/**/*.csv.gz
    watch: true
    min_age: 5s
    max_files: 100
    ```
    """

    parallelism = "a file, or a range of a large file"
    capabilities = frozenset(
        {
            Capability.REPLAY,
            Capability.LIMIT,
            Capability.BOUNDED,
            Capability.TAIL,
            Capability.ORDERED,
            Capability.LOOKUP,
            Capability.ROWS,
        }
    )
    lag_unit = "bytes"
    locates_rows = True
    _files: DiscoveredFiles | None = None
    _is_temporary = False
    """Whether the state directory is that of a preview."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_files": None}

    def default_format(self) -> str | None:
        return format_of_paths(self.config.paths)

    def check_format(self) -> None:
        self._file_format()

    def metadata_schema(self) -> pa.Schema:
        return METADATA

    def is_bounded(self) -> bool:
        return not (self.config.watch or self.config.tail)

    def validate(self) -> None:
        super().validate()
        for path in self.config.paths:
            check_url(path, self.config.storage)
        if self.config.notifications is not None and find_spec("boto3") is None:
            raise MissingExtra.of("aws", "boto3")

    def check(self) -> None:
        file_format = self._file_format()
        if self.config.notifications is not None:
            with closing(Receiver(self.config.notifications, watch=True)) as receiver:
                receiver.check()
        entries = self._discovery().entries() if self.config.lists else []
        if not entries and self.config.notifications is None:
            raise self._no_files_error()
        if self.columns is not None:
            reader = FileReader(file_format, self.config.compression, self.columns)
            for storage, entry in entries[:CHECKED_FILES]:
                url = storage.url(entry.path)
                reader.check_header(storage, entry.path, FileRange(url, entry.size, 0))

    def infer_schema(self) -> pa.Schema | None:
        reader = FileReader(self._file_format(), self.config.compression, None)
        entries = self._discovery().entries()
        if not entries and self.is_bounded():
            raise self._no_files_error()
        return infer_columns(reader, entries[:SAMPLED_FILES])

    def initial_offset(self) -> Offset:
        return {"files": 0}

    def latest_offset(self, start: Offset) -> Offset:
        end = self._discovered.update(int(start["files"]))
        if not end and self.is_bounded() and self.config.notifications is None:
            raise self._no_files_error()
        return self._offset(start, max(end, int(start["files"])))

    def limit_batch(self, start: Offset, end: Offset) -> Offset:
        first, last = int(start["files"]), int(end["files"])
        max_size = self.config.max_size or math.inf
        count = total = 0
        for range_ in self._discovered.log.ranges(first, last):
            total += range_.bytes
            if count and (total > max_size or count == self.config.max_files):
                break
            count += 1
        return self._offset(start, first + count)

    def _offset(self, start: Offset, files: int) -> Offset:
        """Returns the offset after a number of files, with a digest that identifies the files."""
        if files == int(start["files"]):
            return dict(start)
        return {"files": files, "digest": self._discovered.log.digest(files)}

    def partitions(self, start: Offset, end: Offset) -> Sequence[tuple[FileRange, ...]]:
        ranges = self._discovered.log.ranges(int(start["files"]), int(end["files"]))
        return divide_files(ranges, lambda range_: range_.bytes, PARTITION_BYTES)

    def read(self, partition: tuple[FileRange, ...], read: Read) -> Iterator[pa.RecordBatch]:
        if self.columns is None:
            raise PlanError("the columns of the files are unknown")
        reader = FileReader(self._file_format(), self.config.compression, self.columns)
        for range_ in partition:
            storage = self._storage(range_.path)
            if range_.stop == range_.start:
                continue
            with storage.convert_errors("read", range_.display_path):
                entry = locate(storage, range_, self.config)
            if entry is None:
                continue
            yield from reader.rows(storage, entry.path, range_, read)
            with storage.convert_errors("read", range_.display_path):
                check_unchanged(storage, range_, entry, self.config)

    def decode(self, payload: bytes, origin: str, position: int) -> pa.RecordBatch:
        return self._decode(payload, origin, None)

    def decode_with_header(
        self, payload: bytes, origin: str, position: int, header: bytes
    ) -> pa.RecordBatch:
        return self._decode(payload, origin, header)

    def record_metadata(self, origin: str, position: int) -> Mapping[str, Any]:
        return {"position": position, **path_metadata(origin, self.config.tail)}

    def _decode(self, payload: bytes, origin: str, header: bytes | None) -> pa.RecordBatch:
        if self.columns is None:
            raise PlanError("the columns of the files are unknown")
        storage = self._storage(origin)
        reader = FileReader(self._file_format(), self.config.compression, self.columns)
        return reader.record(storage, origin[len(storage.prefix) :], payload, header)

    def commit(self, end: Offset) -> None:
        last = int(end["files"])
        if self.config.after_read == "keep":
            return
        log = self._discovered.log
        if last > log.archived:
            archive = Archive(self._locations(), self._move_target())
            for range_ in log.ranges(log.archived, last):
                if range_.is_last:
                    archive.put(self._storage(range_.path), range_)
            log.archive(last)
            log.discard(last)

    def with_state(self, state: Path) -> Self:
        new = super().with_state(state)
        new._is_temporary = True
        return new

    def close(self) -> None:
        if self._files is not None:
            self._files.close()

    def min_offset(self, first: Offset, second: Offset) -> Offset:
        return min(first, second, key=lambda offset: int(offset["files"]))

    def lag(self, current: Offset, latest: Offset) -> int:
        ranges = self._discovered.log.ranges(int(current["files"]), int(latest["files"]))
        return sum(range_.bytes for range_ in ranges)

    def prepare_lookup(self) -> None:
        for option in ("watch", "tail", "after_read", "notifications"):
            if getattr(self.config, option) not in (False, "keep", None):
                raise PlanError(
                    f"{option} has no meaning for a lookup table: all files are its rows",
                    code="unused-option",
                    hint=f"Remove {option}: changed files are read again.",
                )

    def table_version(self) -> list[list[str | int | None]]:
        return [
            [storage.url(entry.path), entry.size, entry.modified, entry.inode]
            for storage, entry in self._discovery().entries()
        ]

    def reads_once(self) -> bool:
        return self.config.after_read != "keep"

    def _locations(self) -> list[Location]:
        config = self.config
        return [parse_location(path, config.storage, config.pattern) for path in self.config.paths]

    def _discovery(self) -> Discovery:
        config = self.config
        is_divisible = _never
        if config.compression in ("auto", "none") and isinstance(self.format, FileFormat):
            is_divisible = self.format.is_divisible
        target = self._move_target()
        archive = "" if target is None else f"{target.storage.url(target.root.rstrip('/'))}/"
        return Discovery(
            self._locations(), config.order, config.min_age, config.tail, is_divisible, archive,
            self._spanned_lines(),
        )  # fmt: skip

    def _spanned_lines(self) -> SpannedLines | None:
        if not isinstance(self.format, FileFormat) or not self.format.spans_lines:
            return None
        return SpannedLines(self.format.last_record_start, self.config.idle_timeout)

    def _move_target(self) -> Location | None:
        """Returns the directory of `after_read: {move: DIRECTORY}`; None without the option."""
        after_read = self.config.after_read
        if not isinstance(after_read, Move):
            return None
        return parse_location(after_read.move, self.config.storage)

    @property
    def _discovered(self) -> DiscoveredFiles:
        if self._files is None:
            self._files = DiscoveredFiles(
                self.config, self.context, self._discovery, is_temporary=self._is_temporary
            )
        return self._files

    def _storage(self, url: str) -> Storage:
        for location in self._locations():
            if url.startswith(location.storage.url(location.root)):
                return location.storage
        return open_storage(url, self.config.storage)[0]

    def _file_format(self) -> FileFormat[Any]:
        return check_format(self.format, self.config)

    def _no_files_error(self) -> ConnectError:
        location = self._locations()[0]
        if not self.is_bounded():
            return Transient(
                f"could not find files at {location.url()}",
                code="no-files",
                hint=f"Add files: the source waits for files. {location.hint()}",
            )
        return Permanent(
            f"cannot find files at {location.url()}", code="no-files", hint=location.hint()
        )


def _never(start: bytes) -> bool:
    return False
