"""Files of a state in an object store: upload of changed files, and download."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path
from uuid import uuid4

from penstock.core.errors import StateError
from penstock.core.files.private_files import create_directory, open_private
from penstock.runtime.object_state.client import ObjectClient, ignored_failures
from penstock.runtime.object_state.local_files import LOCAL_ENTRIES, check_names
from penstock.runtime.object_state.manifest import FILES, StoredFile
from penstock.runtime.state.entries import MARKER

_TEXT_BYTES = 64 << 10
"""The size up to which a text is in the manifest."""
_MAX_PARTS = 64
_THREADS = 8


class FileStore:
    """The files of a state. `root` is the directory of the local copy."""

    def __init__(self, client: ObjectClient, root: Path) -> None:
        self._client, self._root = client, root

    def upload(
        self, paths: Iterable[str], known: Mapping[str, StoredFile]
    ) -> dict[str, StoredFile | None]:
        """Uploads files, in parallel. Returns None for a file that was removed meanwhile.

        Of a file that has grown since it was uploaded, only the new end is sent.
        """
        paths = list(paths)
        if len(paths) < 2:
            return {path: self._upload(path, known.get(path)) for path in paths}
        with ThreadPoolExecutor(_THREADS) as pool:
            stored = pool.map(lambda path: self._upload(path, known.get(path)), paths)
            return dict(zip(paths, stored, strict=True))

    def _upload(self, path: str, known: StoredFile | None) -> StoredFile | None:
        file = self._root / path
        try:
            modified = file.stat().st_mtime_ns
            content = file.read_bytes()
        except FileNotFoundError:
            return None
        digest, size = _digest(content), len(content)
        if known is not None and known.digest == digest:
            return known
        text = _as_text(content)
        if text is not None:
            return StoredFile(size, modified, digest, text)
        start, parts = 0, tuple[str, ...]()
        if known is not None and _has_grown(known, content):
            start, parts = known.size, known.parts
        key = f"{FILES}/{uuid4().hex}"
        self._client.write(key, content[start:])
        return StoredFile(size, modified, digest, parts=(*parts, key))

    def download(
        self,
        files: Mapping[str, StoredFile],
        is_needed: Callable[[str, StoredFile], bool] = lambda path, file: True,
    ) -> None:
        """Downloads the needed files that differ, and removes local files that are not stored.

        Raises StateError if the content of a file is not that of its upload.
        """
        check_names(files, self._client.url)
        self._remove_others(files)
        needed = {path: file for path, file in files.items() if is_needed(path, file)}
        missing = [path for path, file in needed.items() if not self._is_same(path, file)]
        # A directory without the marker is rejected as that of another program.
        missing.sort(key=lambda path: path != MARKER)
        for path in missing[:1]:
            self._download(path, files[path])
        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(lambda path: self._download(path, files[path]), missing[1:]))

    def _remove_others(self, files: Mapping[str, StoredFile]) -> None:
        """Removes local files that are not stored, such as those of an interrupted run."""
        for directory, names, local in os.walk(self._root, topdown=True):
            if Path(directory) == self._root:
                names[:] = [name for name in names if name not in LOCAL_ENTRIES]
                local = [name for name in local if name not in LOCAL_ENTRIES]
            for name in local:
                path = Path(directory, name)
                if os.path.relpath(path, self._root) not in files:
                    path.unlink(missing_ok=True)

    def _is_same(self, path: str, file: StoredFile) -> bool:
        local = self._root / path
        try:
            return local.stat().st_size == file.size and _digest(local.read_bytes()) == file.digest
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return False

    def _download(self, path: str, file: StoredFile) -> None:
        if file.text is not None:
            content = file.text.encode()
        else:
            content = b"".join(self._part(path, key) for key in file.parts)
        if _digest(content) != file.digest:
            raise _damaged(self._client.url, path, "has another content than its digest")
        target = self._root / path
        create_directory(target.parent)
        hidden = target.with_name(f".{target.name}.{uuid4().hex[:8]}")
        with open_private(hidden, "wb") as written:
            written.write(content)
        # The order of dead letters and the times of runs follow from the files.
        os.utime(hidden, ns=(file.modified, file.modified))
        hidden.replace(target)

    def _part(self, path: str, key: str) -> bytes:
        found = self._client.read(key)
        if found is None:
            raise _damaged(self._client.url, path, f"has no object {key}")
        return found[0]

    def remove_unused(self, files: Mapping[str, StoredFile]) -> None:
        """Deletes the objects that no stored file names, such as those of a killed run."""
        used = {key for file in files.values() for key in file.parts}
        with ignored_failures():
            self._client.delete([key for key in self._client.keys(FILES) if key not in used])


def _as_text(content: bytes) -> str | None:
    if len(content) > _TEXT_BYTES:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _has_grown(known: StoredFile, content: bytes) -> bool:
    if not known.parts or len(known.parts) >= _MAX_PARTS or known.size >= len(content):
        return False
    return _digest(content[: known.size]) == known.digest


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()


def _damaged(url: str, path: str, problem: str) -> StateError:
    return StateError(
        f"the state in {url} is damaged: the file {path} {problem}", code="corrupt-state",
        hint="Restore the objects from a backup, or set another runtime.state.",
    )  # fmt: skip
