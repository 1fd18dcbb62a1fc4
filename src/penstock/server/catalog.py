"""Catalog of the server: the pipelines of its directories, with the facts of their files."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from penstock.catalog import pipeline_files
from penstock.core.cache import cache_directory
from penstock.core.errors import PenstockError
from penstock.core.version import __version__
from penstock.server.connections.profiles import Profiles
from penstock.server.pipeline_files import PipelineFiles
from penstock.server.store.pipelines import Pipelines, digest_of
from penstock.server.workers.pool import WorkerPool

DESCRIBE_SECONDS = 10.0
IDLE_SECONDS = 30.0
"""The time after which a worker without requests is ended."""
RETRY_SECONDS = 10.0
"""The time after which a file that could not be read is read again."""


@dataclass(frozen=True)
class CatalogEntry:
    """The facts of a pipeline file. `state` is the state directory; None for an invalid file.

    `connections` are the profiles of the server that it uses. `share` is the name of its share.
    `stored` is whether the state is in an object store, whose lease allows one run.
    `digest` is the SHA-256 of the text. `text` is None for a file that cannot be read.
    """

    id: str
    file: Path
    name: str
    language: str
    state: Path | None = None
    nodes: Sequence[Mapping[str, Any]] = ()
    queries: Sequence[Mapping[str, Any]] = ()
    bounded: bool | None = None
    connections: Sequence[str] = ()
    share: str | None = None
    stored: bool = False
    errors: Sequence[Mapping[str, Any]] = ()
    warnings: Sequence[Mapping[str, Any]] = ()
    digest: str = ""
    text: str | None = None
    stamp: str = field(default="", compare=False)

    @property
    def is_read(self) -> bool:
        """Whether the errors are those of the text, and not of a failed attempt to read it."""
        return bool(self.stamp)

    @classmethod
    def of(
        cls, id: str, file: Path, facts: Mapping[str, Any], stamp: str, text: str
    ) -> CatalogEntry:
        """Returns the entry of a file from the facts of the operation `describe`."""
        state = facts["state"] and file.parent / facts["state"]
        return cls(
            id, file, **{**facts, "state": state or None}, digest=digest_of(text), text=text,
            stamp=stamp,
        )  # fmt: skip


class Catalog:
    """The pipelines of several directories. Safe for several threads."""

    def __init__(
        self, directories: Sequence[Path], pipelines: Pipelines, files: PipelineFiles,
        workers: WorkerPool, profiles: Profiles,
    ) -> None:  # fmt: skip
        self._profiles, self._profiles_stamp = profiles, ""
        self._directories, self._pipelines = directories, pipelines
        self._files, self._workers = files, workers
        self._next_tries: dict[str, float] = {}
        self._entries: dict[str, CatalogEntry] = {}
        self._lock = threading.Lock()

    def entry(self, id: str) -> CatalogEntry | None:
        """Returns the entry of a pipeline; None if its file does not exist."""
        return self._entries.get(id)

    def entries(self) -> list[CatalogEntry]:
        """Returns all entries, by name."""
        return sorted(
            self._entries.copy().values(), key=lambda entry: (entry.name, str(entry.file))
        )

    def refresh(self) -> None:
        """Reads new and changed files. A pipeline without a file has no entry from then on."""
        with self._lock:
            self._profiles_stamp = self._profiles.stamp()
            known = {pipeline.file: pipeline.id for pipeline in self._pipelines.all()}
            found = {}
            for directory in self._directories:
                for file in pipeline_files(directory):
                    id = known.get(str(file)) or self._pipelines.add(str(file))
                    found[id] = self._read(id, file)
            self._entries = {id: entry for id, entry in found.items() if entry is not None}
        self._workers.end_idle(IDLE_SECONDS)

    def reread(self, id: str) -> CatalogEntry | None:
        """Reads the file of a pipeline again, and returns its entry."""
        with self._lock:
            self._profiles_stamp = self._profiles.stamp()
            self._next_tries.pop(id, None)
            entry = self._entries.get(id)
            if entry is not None:
                self._entries[id] = replace(entry, stamp="")
            file = entry.file if entry is not None else Path(self._pipelines.get(id).file)
            found = self._read(id, file)
            if found is not None:
                self._entries[id] = found
            else:
                self._entries.pop(id, None)
            return found

    def _read(self, id: str, file: Path) -> CatalogEntry | None:
        try:
            status = file.lstat()
        except OSError:
            return None
        stamp = (
            f"{__version__}:{status.st_mtime_ns}:{status.st_ctime_ns}:{status.st_size}:"
            f"{self._profiles_stamp}:{cache_directory()}"  # which has states of object stores
        )
        known = self._entries.get(id)
        if known is not None and known.stamp == stamp:
            return known
        if known is not None and time.monotonic() < self._next_tries.get(id, 0.0):
            return known
        text = None
        try:
            text = self._files.read(file)
            facts = self._pipelines.facts(id, stamp)
            if facts is None:
                facts = self._workers.call(
                    "describe", file, text=text, timeout=DESCRIBE_SECONDS,
                    variables=self._profiles.environment(None, id),
                )  # fmt: skip
                if not facts["errors"]:  # an error may end without a change of the file
                    self._pipelines.set_facts(id, stamp, facts)
            return CatalogEntry.of(id, file, facts, stamp, text)
        except PenstockError as error:
            return self._unread(id, file, text, known, error)

    def _unread(
        self,
        id: str,
        file: Path,
        text: str | None,
        known: CatalogEntry | None,
        error: PenstockError,
    ) -> CatalogEntry:
        """Returns the entry of a file that cannot be read now, with its earlier facts.

        Its run continues under supervision.
        """
        self._next_tries[id] = time.monotonic() + RETRY_SECONDS
        errors = [{"code": error.code, "message": error.message, "hint": error.hint}]
        if known is not None:
            return replace(known, errors=errors, digest="", text=text, stamp="")
        return CatalogEntry(id, file, file.stem, "yaml", errors=errors, text=text)
