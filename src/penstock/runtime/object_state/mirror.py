"""The storage of a state in an object store: a local copy of its files, mirrored at durable points.

At the start of a run the local copy becomes equal to the stored files. A change of local files is
uploaded by `stage`, and becomes part of the state when the manifest is replaced. A run that was
paused while another one took over its lease fails at its next durable point, which precedes all
output.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.core.errors import ConnectError, PenstockError, StateError
from penstock.core.files.private_files import FILE_MODE
from penstock.runtime.object_state.client import Conflict, ObjectClient, ignored_failures
from penstock.runtime.object_state.file_store import FileStore
from penstock.runtime.object_state.lease import (
    LEASE_SECONDS,
    RENEWALS,
    acquire,
    has_ended,
    lost_error,
    new_lease,
)
from penstock.runtime.object_state.local_files import Mark, find_files, is_below
from penstock.runtime.object_state.manifest import KEY, Lease, Manifest, StoredFile
from penstock.runtime.state.directory import now
from penstock.runtime.state.entries import BATCHES, HISTORY, LOCK
from penstock.runtime.state.lock import local_lock

STOP = "stop"
"""The key of a stop request."""
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""The clock of the lease. It also counts the time in which the machine is suspended."""
_PERIODIC = ("dead_letters", BATCHES, HISTORY)
"""Entries that change between batches."""
_REFRESH_SECONDS = 1.0
_DOWNLOADS = 5
"""How often files are downloaded while a run replaces the manifest."""


@dataclass
class _Owned:
    """A state that this run owns: the lease, the last manifest, and the changes since then.

    `renewed` is the time of the last renewal. `unused` are the objects that the next manifest does
    not name. `marks` are those of the local files, None before they are complete.
    """

    lease: Lease
    version: dict[str, str]
    sequence: int
    files: dict[str, StoredFile]
    renewed: float
    marks: dict[str, Mark] | None = None
    has_changed: bool = False
    unused: list[str] = field(default_factory=list)


class ObjectStorage:
    """The storage of a state below a URL. `root` is the directory of the local copy."""

    def __init__(self, client: ObjectClient, root: Path, seconds: float = LEASE_SECONDS) -> None:
        self._client, self._root, self._seconds = client, root, seconds
        self._files = FileStore(client, root)
        self._owned: _Owned | None = None
        self._staging, self._publishing = threading.Lock(), threading.RLock()
        self._noted: dict[Path, None] = {}
        self._noting = threading.Lock()
        self._read: tuple[float, Manifest, float] | None = None
        self.lost: PenstockError | None = None

    # A run

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Owns the state during a run, and renews the lease meanwhile."""
        began, lease = _time(), new_lease(self._seconds, now())
        taken = acquire(self._client, lease)
        files = dict(taken.manifest.files)
        self._owned = _Owned(lease, taken.version, taken.manifest.sequence, files, began)
        self.lost = None
        ended = threading.Event()
        thread = threading.Thread(target=self._renew, args=(ended,), daemon=True)
        thread.start()
        try:
            self._files.download(files)
            self._owned.marks = find_files(self._root, [self._root])
            self._files.remove_unused(files)
            with ignored_failures():
                self._client.delete([STOP])
            yield
            self._release()
        except BaseException:
            with suppress(PenstockError):
                self._release()
            raise
        finally:
            ended.set()
            thread.join()
            self._owned = None

    def note(self, path: Path) -> None:
        with self._noting:
            self._noted[path] = None

    def stage(self, *paths: Path) -> None:
        with self._staging:
            self._stage(paths)

    def _stage(self, paths: tuple[Path, ...]) -> None:
        owned = self._owned
        if owned is None or owned.marks is None or self.lost is not None:
            return
        with self._noting:
            noted, self._noted = self._noted, {}
        paths = (*paths, *noted)
        directories = [os.path.relpath(path, self._root) for path in paths]
        marks = find_files(self._root, paths)
        changed = [path for path, mark in marks.items() if owned.marks.get(path) != mark]
        removed = [p for p in owned.files if p not in marks and is_below(p, directories)]
        if not changed and not removed:
            return
        try:
            stored = self._files.upload(changed, owned.files)
        except BaseException:
            with self._noting:
                self._noted |= noted
            raise
        with self._publishing:
            _apply(owned, {**stored, **dict.fromkeys(removed)})
        for path in removed:
            owned.marks.pop(path, None)
        owned.marks |= {path: marks[path] for path in changed if stored[path] is not None}

    def sync(self, *paths: Path) -> None:
        self.stage(*paths)
        self._publish()

    def check_owner(self) -> None:
        owned = self._owned
        if owned is not None and _time() - owned.renewed > self._seconds / 2:
            self._publish(renew=True)
        if self.lost is not None:
            raise self.lost

    def _release(self) -> None:
        """Makes all changes durable and ends the lease. Raises StateError if it was taken over."""
        self.stage(self._root)
        self._publish(renew=True, release=True)

    def _publish(self, *, renew: bool = False, release: bool = False) -> None:
        """Replaces the manifest if files have changed, or with `renew`.

        With `release` the new manifest has no lease. Raises StateError if another run has taken
        over the state.
        """
        with self._publishing:
            if self.lost is not None:
                raise self.lost
            owned = self._owned
            if owned is None or not (owned.has_changed or renew):
                return
            began, unused = _time(), owned.unused
            lease = None if release else owned.lease
            self._replace(owned, lease)
            owned.renewed, owned.has_changed, owned.unused = began, False, []
            if release:
                self._owned = None
        with ignored_failures():
            self._client.delete(unused)

    def _replace(self, owned: _Owned, lease: Lease | None) -> None:
        """Replaces the manifest. Raises StateError if another run has replaced it."""
        while True:
            manifest = Manifest(owned.sequence + 1, lease, owned.files)
            try:
                owned.version = self._client.replace(KEY, manifest.encode(), owned.version)
                owned.sequence = manifest.sequence
                return
            except Conflict:
                found = self._client.read(KEY)
            current = Manifest() if found is None else Manifest.decode(found[0], self._client.url)
            is_own = current.lease is not None and current.lease.id == owned.lease.id
            if found is None or not (is_own or current == manifest):
                self.lost = lost_error(current.lease, self._client.url)
                raise self.lost
            # The response to an earlier attempt was lost.
            owned.version, owned.sequence = found[1].id, current.sequence
            if current == manifest:
                return

    def _renew(self, ended: threading.Event) -> None:
        """Renews the lease until the run has ended, and takes stop requests."""
        while not ended.wait(self._seconds / RENEWALS):
            try:
                self._stage_periodic()
                self._publish(renew=True)
                if self._client.version(STOP) is not None:
                    (self._root / STOP).touch(FILE_MODE)
                    self._client.delete([STOP])
            except (ConnectError, OSError):
                continue
            except StateError:
                return

    def _stage_periodic(self) -> None:
        """Uploads the entries that change between batches, unless a batch uploads its files.

        An upload of large files may take longer than the lease, which must be renewed meanwhile.
        """
        if self._staging.acquire(blocking=False):
            try:
                self._stage(tuple(self._root / name for name in _PERIODIC))
            finally:
                self._staging.release()

    # Other processes

    def owner(self) -> Mapping[str, Any] | None:
        manifest, modified = self._current()
        lease = manifest.lease
        if lease is None or has_ended(lease) or time.time() - modified > 2 * lease.seconds:
            return None
        return lease.owner()

    def refresh(self) -> None:
        with local_lock(self._root / LOCK) as is_free:
            if is_free:
                self._download()

    def _download(self) -> None:
        """Downloads the files that other processes than a run read.

        A run deletes the objects of earlier manifests, so that the last one is read again if an
        object is missing.
        """
        manifest, _ = self._current()
        for _ in range(_DOWNLOADS):
            try:
                self._files.download(manifest.files, _is_for_reading)
                return
            except StateError:
                self._read = None
                last, _ = self._current()
                if last.sequence == manifest.sequence:
                    raise
                manifest = last
        self._files.download(manifest.files, _is_for_reading)

    def request_stop(self) -> None:
        self._client.write(STOP, b"")

    def _current(self) -> tuple[Manifest, float]:
        """Returns the manifest, at most a second old, and the time of its last change."""
        if self._read is None or time.monotonic() - self._read[0] > _REFRESH_SECONDS:
            found = self._client.read(KEY)
            manifest = Manifest() if found is None else Manifest.decode(found[0], self._client.url)
            modified = 0.0 if found is None else found[1].modified.timestamp()
            self._read = time.monotonic(), manifest, modified
        return self._read[1:]


def _apply(owned: _Owned, changes: Mapping[str, StoredFile | None]) -> None:
    """Changes the files of the next manifest. None is a removed file."""
    for path, file in changes.items():
        before = owned.files.get(path)
        if before == file:
            continue
        if file is None:
            del owned.files[path]
        else:
            owned.files[path] = file
        kept = file.parts if file is not None else ()
        owned.unused += [key for key in before.parts if key not in kept] if before else []
        owned.has_changed = True


def _is_for_reading(path: str, file: StoredFile) -> bool:
    """Returns whether other processes than a run read a file."""
    return file.text is not None or not path.startswith("checkpoints/")


def _time() -> float:
    return time.clock_gettime(_CLOCK)
