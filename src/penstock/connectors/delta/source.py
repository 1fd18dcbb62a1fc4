"""The source of Delta Lake."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

import pyarrow as pa

from penstock.connectors.delta.client import Location
from penstock.connectors.delta.config import DeltaSourceConfig
from penstock.connectors.delta.errors import convert_errors
from penstock.connectors.delta.log import DeltaFile, VersionLog, check_readable, log_name
from penstock.connectors.delta.reader import METADATA, Reader
from penstock.connectors.delta.types import arrow_schema
from penstock.core.errors import OptionError
from penstock.sdk import Offset, Read
from penstock.sdk.lakes.files import data_gone
from penstock.sdk.lakes.source import LakeSource


class DeltaSource(LakeSource[DeltaSourceConfig]):
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

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
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
    def _log(self) -> VersionLog:
        if self._versions is None:
            self._versions = VersionLog(self._location, self.config.changes, self.skips_gaps)
        return self._versions

    def check(self) -> None:
        check_readable(self._open_first(), self.config.path)

    def infer_schema(self) -> pa.Schema | None:
        return arrow_schema(self._open_first().schema())

    def metadata_schema(self) -> pa.Schema:
        return METADATA

    def initial_offset(self) -> Offset:
        table = self._open_first()
        version = int(table.version())
        return {"table": table.metadata().id, "snapshot": version, "version": version, "file": 0}

    def find_end(self, start: Offset) -> Offset:
        self._log.forget(start["version"])
        latest = start["snapshot"] if self.is_fixed else self._latest_version(start)
        if latest + 1 <= start["version"]:
            return start
        return {**start, "version": latest + 1, "file": 0}

    def read(self, partition: tuple[DeltaFile, ...], read: Read) -> Iterator[pa.RecordBatch]:
        assert self.columns is not None
        operation = self.operation_column if self.config.changes else None
        reader = Reader(self.columns, operation, self.skips_gaps, self._location)
        for file in partition:
            yield from reader.rows(file, read)

    def versions(self, start: Offset, end: Offset) -> Iterator[tuple[int, Sequence[DeltaFile]]]:
        last = end["version"] + (1 if end["file"] else 0)
        for version in range(start["version"], last):
            yield version, self._log.files(version, snapshot=version == start["snapshot"])

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
        if config.time is not None:
            self._check_time(config.time, int(table.version()))
        return table

    def _check_time(self, wanted: datetime, version: int) -> None:
        """Raises OptionError if a version is later than a time, as the first one that exists."""
        with convert_errors("read the log of", self._location.path):
            written = self._location.modified(log_name(version))
        if written is not None and wanted < written:
            raise OptionError.of(
                "timestamp", code="invalid-option",
                message=f"the table has no version at {wanted.isoformat()} or before",
                hint=f"Set timestamp to {written.isoformat(timespec='milliseconds')} or later, "
                f"the time of version {version}.",
            )  # fmt: skip

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
