"""The source of Delta Lake."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from penstock.connectors.delta.client import Location
from penstock.connectors.delta.config import DeltaSourceConfig
from penstock.connectors.delta.errors import convert_errors
from penstock.connectors.delta.log import FileOfVersion, VersionLog, check_readable, data_gone
from penstock.connectors.delta.reader import METADATA, Reader
from penstock.connectors.delta.types import arrow_schema
from penstock.core.errors import OptionError
from penstock.sdk import Capability, Offset, Read
from penstock.sdk.file_partitions import divide_files
from penstock.sdk.polling import PolledSource


class DeltaSource(PolledSource[DeltaSourceConfig]):
    """Reads a table of Delta Lake, then the rows that later versions add, or all of their changes.

    The first run reads the table as it is at a version, by default the latest one; later runs and
    `watch` read the versions after it. A version that removes or changes rows (DELETE, UPDATE,
    MERGE, overwriting) is an error, unless `changes` is set. A version that only compacts files
    has no rows to read.

    With `changes: true` rows are changes: the rows of the first version are inserts, then the
    inserts, updates and deletes of each version follow, as its change data feed has them
    (`delta.enableChangeDataFeed`). A version without a change data feed that rewrites files is read
    as deletes of all their rows and inserts of all new ones.

    The metadata columns are `path`, `commit_version` and `commit_timestamp`. The columns are those
    of the table; a column that is added later is not read until the pipeline starts with new state.
    Tables with mapped columns cannot be read, nor can changes as deletion vectors without a change
    data feed.

    ```yaml
    type: delta
    path: lake/orders
    watch: true
    ```
    """

    extra = "delta"
    client_modules = ("deltalake",)
    parallelism = "a file"
    lag_unit = "files"
    locates_rows = True
    capabilities = frozenset(
        {
            Capability.REPLAY,
            Capability.LIMIT,
            Capability.BOUNDED,
            Capability.TAIL,
            Capability.ORDERED,
            Capability.ROWS,
        }
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.carries_operations = self.has_complete_changes = self.config.changes
        self._table: Any = None
        self._versions: VersionLog | None = None

    def __getstate__(self) -> Mapping[str, Any]:
        return {**super().__getstate__(), "_table": None, "_versions": None}

    def validate(self) -> None:
        super().validate()
        self._location  # noqa: B018

    @cached_property
    def _location(self) -> Location:
        return Location.of(self.config)

    @property
    def _skips_gaps(self) -> bool:
        return self.config.on_data_loss == "continue"

    @property
    def _log(self) -> VersionLog:
        if self._versions is None:
            self._versions = VersionLog(self._location, self.config.changes, self._skips_gaps)
        return self._versions

    def check(self) -> None:
        check_readable(self._open_first(), self.config.path)

    def infer_schema(self) -> pa.Schema | None:
        return arrow_schema(self._open_first().schema())

    def metadata_schema(self) -> pa.Schema:
        return METADATA

    @property
    def poll_interval(self) -> float | None:
        return self.config.interval if self.config.watch else None

    def initial_offset(self) -> Offset:
        table = self._open_first()
        version = int(table.version())
        return {"table": table.metadata().id, "snapshot": version, "version": version, "file": 0}

    def find_end(self, start: Offset) -> Offset:
        self._log.forget(start["version"])
        latest = start["snapshot"] if self._is_fixed else self._latest_version(start)
        if latest + 1 <= start["version"]:
            return start
        return {**start, "version": latest + 1, "file": 0}

    @property
    def _is_fixed(self) -> bool:
        """Whether only the version that the options name is read."""
        config = self.config
        return not config.watch and (config.version is not None or config.timestamp is not None)

    def limit_batch(self, start: Offset, end: Offset) -> Offset:
        max_files = self.config.max_files or math.inf
        max_size = self.config.max_size or math.inf
        if max_files == max_size == math.inf:
            return end
        count = size = 0
        for version, files in self._ranges(start, end):
            first = start["file"] if version == start["version"] else 0
            is_divisible = all(file.kind == "insert" for file in files)
            for group in [[each] for each in files] if is_divisible else [files]:
                size += sum(file.size for file in group)
                if count and (count + len(group) > max_files or size > max_size):
                    return {**start, "version": version, "file": first}
                count, first = count + len(group), first + len(group)
        return end

    def partitions(self, start: Offset, end: Offset) -> Sequence[tuple[FileOfVersion, ...]]:
        files = (file for _, files in self._ranges(start, end) for file in files)
        return divide_files(files, lambda file: file.size)

    def read(self, partition: tuple[FileOfVersion, ...], read: Read) -> Iterator[pa.RecordBatch]:
        assert self.columns is not None
        operation = self.operation_column if self.config.changes else None
        reader = Reader(self._location, self.columns, operation, self._skips_gaps)
        for file in partition:
            yield from reader.rows(file, read)

    def min_offset(self, first: Offset, second: Offset) -> Offset:
        return min(first, second, key=lambda offset: (offset["version"], offset["file"]))

    def lag(self, current: Offset, latest: Offset) -> int:
        return sum(len(files) for _, files in self._ranges(current, latest))

    def _ranges(self, start: Offset, end: Offset) -> Iterator[tuple[int, Sequence[FileOfVersion]]]:
        """Yields the versions of a range with their files."""
        last = end["version"] + (1 if end["file"] else 0)
        for version in range(start["version"], last):
            files = self._log.files(version, snapshot=version == start["snapshot"])
            first = start["file"] if version == start["version"] else 0
            stop = end["file"] if version == end["version"] else len(files)
            if first < stop:
                yield version, files[first:stop]

    def _open_first(self) -> Any:
        """Returns the table at the version at which a pipeline without state starts."""
        config, location = self.config, self._location
        table = location.open()
        if table is None:
            raise OptionError.of(
                "path", message=f'there is no table of Delta Lake at "{location.path}"',
                code="unknown-table", hint="Correct path, or write the table first.",
            )  # fmt: skip
        wanted = config.version if config.version is not None else config.time
        if wanted is None:
            return table
        latest = table.version()
        if config.version is not None and config.version > latest:
            raise OptionError.of(
                "version", message=f"the last version of the table is {latest}",
                code="invalid-option", hint=f"Set version to at most {latest}.",
            )  # fmt: skip
        with convert_errors("read", location.path):
            table.load_as_version(wanted)
        return table

    def _latest_version(self, start: Offset) -> int:
        if self._table is None:
            self._table = self._location.open()
        else:
            with convert_errors("read the log of", self.config.path):
                self._table.update_incremental()
        table, path = self._table, self.config.path
        if table is None:
            raise data_gone(f"the table {path} was deleted")
        if table.metadata().id != start["table"] or table.version() + 1 < start["version"]:
            raise data_gone(f"the table {path} was deleted and created again")
        check_readable(table, path)
        return int(table.version())
