"""The source of files: finds them, remembers them in a log, reads each once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa

from penstock.connectors.files.access import storage_of
from penstock.connectors.files.compression import bare
from penstock.connectors.files.discovery import Discovery
from penstock.connectors.files.listing import Location, location_of
from penstock.connectors.files.log import Found, Log
from penstock.connectors.files.reading import METADATA, Form
from penstock.connectors.files.storage import Storage
from penstock.connectors.files.wanted import FilesSourceConfig, Move
from penstock.core.errors import ConnectError, Permanent, PlanError, Transient
from penstock.sdk import (
    Capability,
    FileFormat,
    Offset,
    Read,
    ReplayableSource,
)

FORMATS = {
    "csv": "csv", "json": "json", "jsonl": "json", "ndjson": "json", "parquet": "parquet",
    "avro": "avro", "arrow": "arrow", "ipc": "arrow", "feather": "arrow",
    "txt": "text", "log": "text",
}  # fmt: skip
SHARE = 4_000_000
"""Small files are read together up to about this many bytes."""
SAMPLED = 3


class FilesSource(ReplayableSource[FilesSourceConfig]):
    """Reads files on a disk or in an object store, each once, in the order they were found.

    A large file is read in pieces where records are lines and it is not compressed; small files
    are read together. What was found is kept in the state directory, and a file that changed in
    between is told.

    ```yaml
    type: files
    path: data/flights/**/*.csv.gz
    watch: true
    settle: 5s
    max_files: 100
    ```
    """

    parallelism = "a file, or a piece of a large one"
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
    unit = "bytes"
    _log: Log | None = None
    _end: int | None = None
    _done = 0

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_log": None, "_end": None}

    def format_for(self) -> str | None:
        for path in self._paths:
            extension = PurePosixPath(bare(path)).suffix.lower().lstrip(".")
            if extension in FORMATS:
                return FORMATS[extension]
        return None

    def metadata(self) -> pa.Schema:
        return METADATA

    def bounded(self) -> bool:
        return not (self.config.watch or self.config.tail)

    def check(self) -> None:
        self._file_format()
        if next(iter(self._discovery().entries()), None) is None:
            raise self._nothing()

    def infer(self) -> pa.Schema | None:
        form = Form(self._file_format(), self.config.compression, None)
        entries = self._discovery().entries()
        if not entries and self.bounded():
            raise self._nothing()
        schemas = [
            form.infer(storage, entry.path, Found(storage.url(entry.path), entry.size, 0))
            for storage, entry in entries[:SAMPLED]
        ]
        known = [schema for schema in schemas if schema is not None]
        return pa.unify_schemas(known, promote_options="permissive") if known else None

    def initial(self) -> Offset:
        return {"files": 0}

    def latest(self, start: Offset) -> Offset:
        if self._end is None or not self.bounded():
            log = self._opened_log()
            with log.locked():
                if int(start["files"]) > len(log):
                    raise log.lost(0, int(start["files"]))
                log.forget(int(start["files"]))
                log.append(self._discovery().news(log))
                if self.config.tail:
                    log.shorten()
            if not len(log) and self.bounded():
                raise self._nothing()
            self._end = len(log)
        return {"files": max(self._end, int(start["files"]))}

    def advance(self, start: Offset, end: Offset) -> Offset:
        first, last = int(start["files"]), int(end["files"])
        most = self.config.max_bytes or math.inf
        taken = total = 0
        for found in self._opened_log().between(first, last):
            total += found.bytes
            if taken and (total > most or taken == self.config.max_files):
                break
            taken += 1
        return {"files": first + taken}

    def partitions(self, start: Offset, end: Offset) -> Sequence[tuple[Found, ...]]:
        shares: list[list[Found]] = []
        room = 0
        for found in self._opened_log().between(int(start["files"]), int(end["files"])):
            if not shares or found.bytes > room:
                shares.append([])
                room = SHARE
            shares[-1].append(found)
            room -= found.bytes
        return [tuple(share) for share in shares]

    def read(self, partition: tuple[Found, ...], read: Read) -> Iterator[pa.RecordBatch]:
        if self.columns is None:
            raise PlanError("the columns of the files are not known")
        form = Form(self._file_format(), self.config.compression, self.columns)
        for found in partition:
            storage = self._storage(found.path)
            with storage.told("read", found.shown):
                path = self._present(storage, found)
            if path is None:
                continue
            yield from form.rows(storage, path, found, read)
            with storage.told("read", found.shown):
                self._present(storage, found)

    def decode(self, payload: bytes, origin: str, position: int) -> pa.RecordBatch:
        if self.columns is None:
            raise PlanError("the columns of the files are not known")
        storage = self._storage(origin)
        form = Form(self._file_format(), self.config.compression, self.columns)
        return form.record(storage, origin[len(storage.prefix) :], payload)

    def commit(self, end: Offset) -> None:
        last = int(end["files"])
        if self.config.after != "keep" and last > self._done:
            for found in self._opened_log().between(self._done, last):
                if found.last:
                    self._put_away(found)
            self._done = last
            self._opened_log().forget(last)

    def lag(self, at: Offset, latest: Offset) -> int:
        between = self._opened_log().between(int(at["files"]), int(latest["files"]))
        return sum(found.bytes for found in between)

    @property
    def _paths(self) -> list[str]:
        path = self.config.path
        return [path] if isinstance(path, str) else list(path)

    def _locations(self) -> list[Location]:
        return [location_of(path, self.config.storage) for path in self._paths]

    def _discovery(self) -> Discovery:
        config = self.config
        lines = config.compression in ("auto", "none") and getattr(self.format, "lines", False)
        return Discovery(self._locations(), config.order, config.settle, config.tail, lines)

    def _opened_log(self) -> Log:
        if self._log is None:
            state = self.context.state
            self._log = Log(state / "files.log" if state is not None else None)
            self._log.refresh()
        return self._log

    def _storage(self, url: str) -> Storage:
        for location in self._locations():
            if url.startswith(location.storage.url(location.root)):
                return location.storage
        return storage_of(url, self.config.storage)[0]

    def _file_format(self) -> FileFormat[Any]:
        if self.format is None:
            raise PlanError(
                "the format of the files is missing: their names do not tell it",
                code="missing-option",
                hint=f"add format: {', '.join(sorted(set(FORMATS.values())))} ...",
            )
        if not isinstance(self.format, FileFormat):
            raise PlanError("this format cannot be read from files")
        if self.config.tail and not self.format.lines:
            raise PlanError(
                "tail needs a format whose records are lines",
                hint="use json or text, or watch: true without tail",
            )
        return self.format

    def _present(self, storage: Storage, found: Found) -> str | None:
        """Where the file is; None if it is to be skipped. Raises Permanent if it is another."""
        path = found.path[len(storage.prefix) :]
        entry = storage.stat(path)
        renamed = not entry or entry.node != found.node
        if self.config.tail and found.node and renamed:
            path = storage.find(path, found.node) or ""
            entry = storage.stat(path) if path else None
        if entry is None:
            if self.config.on_missing == "skip":
                return None
            raise Permanent(
                f"cannot read {found.shown}: it was there and is gone",
                code="file-missing",
                hint="put it back, or set on_missing: skip",
            )
        if self.config.tail and found.stop is not None:
            same = entry.size >= found.stop
        else:
            same = (entry.size, entry.modified) == (found.size, found.modified)
        if same or self.config.on_changed == "read":
            return path
        raise Permanent(
            f"cannot read {found.shown}: it changed after it was found",
            code="file-changed",
            detail=f"it had {found.size:,} bytes and has {entry.size:,}",
            hint="write files elsewhere and rename them when they are complete, or set "
            "settle: 10s, or tail: true for files that grow; on_changed: read goes on",
        )

    def _put_away(self, found: Found) -> None:
        storage = self._storage(found.path)
        path = found.path[len(storage.prefix) :]
        with storage.told("put away", found.shown):
            entry = storage.stat(path)
            if entry is None or (entry.size, entry.modified) != (found.size, found.modified):
                return
            if isinstance(self.config.after, Move):
                target = location_of(self.config.after.move, self.config.storage).root.rstrip("/")
                storage.move(path, f"{target}/{PurePosixPath(path).name}")
            else:
                storage.delete(path)

    def _nothing(self) -> ConnectError:
        location = self._locations()[0]
        if not self.bounded():
            return Transient(
                f"could not find a file yet at {location.url()}",
                code="no-files",
                hint=f"it waits for files; {location.hint()}",
            )
        return Permanent(
            f"cannot find a file at {location.url()}", code="no-files", hint=location.hint()
        )
