"""File systems behind one small set of operations: the local disk, and URLs by pyarrow.fs.

Each operation that changes something is a method here and nothing else is, so that a test can
stop the program before and after every one of them.
"""

from __future__ import annotations

import errno
import io
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.fs as pafs

from penstock.core.errors import ConnectError, Permanent, PlanError, Transient
from penstock.core.text import did_you_mean

SCHEMES = ("file", "s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")


@dataclass(frozen=True)
class Entry:
    """A file: `modified` in nanoseconds since 1970; `node` tells a renamed file from a new one."""

    path: str
    size: int
    modified: int
    node: int = 0


class Storage(ABC):
    """Paths are absolute within the storage and use slashes."""

    prefix = ""

    def url(self, path: str) -> str:
        """The path as a user would write it."""
        return f"{self.prefix}{path}"

    @abstractmethod
    def stat(self, path: str) -> Entry | None:
        """The file, or None if there is no such file."""

    @abstractmethod
    def is_directory(self, path: str) -> bool:
        """Whether there is such a directory."""

    @abstractmethod
    def names(self, directory: str) -> list[str]:
        """What is in a directory; empty if there is no such directory."""

    @abstractmethod
    def walk(self, root: str, depth: int | None = None, hidden: bool = False) -> Iterator[Entry]:
        """All files at most `depth` levels below `root` (1: in it).

        Directories whose names start with a dot or underscore only if `hidden`.
        """

    @abstractmethod
    def open(self, path: str, *, seekable: bool = True) -> BinaryIO:
        """The file for reading."""

    @abstractmethod
    def create(self, path: str) -> BinaryIO:
        """A new file for writing, with the directories above it. Durable after `seal`."""

    @abstractmethod
    def seal(self, file: BinaryIO) -> None:
        """Closes a created file; its content survives a crash of the machine."""

    @abstractmethod
    def replace(self, path: str, content: bytes) -> None:
        """Writes a small file as a whole: a reader or a crash sees the old one or the new."""

    @abstractmethod
    def move(self, source: str, target: str) -> None:
        """Moves a file; whole in either place at any time, in both perhaps for a moment."""

    @abstractmethod
    def settle(self, directory: str) -> None:
        """Makes moves into a directory survive a crash of the machine."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Deletes a file, if it is there."""

    @abstractmethod
    def prune(self, directory: str) -> None:
        """Removes a directory and those in it, as far as they are empty."""

    def find(self, path: str, node: int) -> str | None:
        """Where the file that was at `path` is now, if it was renamed within its directory."""
        directory = str(PurePosixPath(path).parent)
        here = (entry for entry in self.walk(directory, 1) if node and entry.node == node)
        return next((entry.path for entry in here), None)

    def read(self, path: str) -> bytes | None:
        """The content of a small file, or None if there is none."""
        if self.stat(path) is None:
            return None
        with self.open(path) as file:
            return file.read()


def storage_of(location: str) -> tuple[Storage, str]:
    """The storage of a path or URL, and the path in it. Raises PlanError."""
    if "://" not in location:
        return LocalStorage(), os.path.normpath(location)
    return _remote(location)


@cache
def _remote(location: str) -> tuple[Storage, str]:
    scheme = location.partition("://")[0].lower()
    if scheme not in SCHEMES:
        hint = did_you_mean(scheme, SCHEMES)
        raise PlanError(f'cannot read or write files at "{scheme}://"', code="scheme", hint=hint)
    bare, mark, query = location.partition("?")
    if scheme == "file":
        return LocalStorage(), os.path.normpath(unquote(bare.partition("://")[2]))
    try:
        system, path = pafs.FileSystem.from_uri(
            quote(bare, safe="/:%@,;+~!*'()$[]{}") + mark + query
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise PlanError(f'"{location}" is not a valid URL', detail=str(error)) from error
    prefix = bare[: len(bare) - len(path)] if bare.endswith(path) else f"{scheme}://"
    return ArrowStorage(system, prefix), path.rstrip("/")


class LocalStorage(Storage):
    """The local disk."""

    def stat(self, path: str) -> Entry | None:
        try:
            found = Path(path).stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return None if Path(path).is_dir() else _entry(path, found)

    def is_directory(self, path: str) -> bool:
        return Path(path).is_dir()

    def names(self, directory: str) -> list[str]:
        try:
            return sorted(child.name for child in Path(directory).iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []

    def walk(self, root: str, depth: int | None = None, hidden: bool = False) -> Iterator[Entry]:
        seen: set[tuple[int, int]] = set()
        pending = [(root, depth)]
        while pending:
            directory, left = pending.pop()
            try:
                with os.scandir(directory) as found:
                    children = sorted(found, key=lambda child: child.name)
            except (FileNotFoundError, NotADirectoryError):
                continue
            for child in children:
                try:
                    status = child.stat()
                except FileNotFoundError:
                    continue
                if not child.is_dir():
                    yield _entry(child.path, status)
                elif left != 1 and (hidden or not child.name.startswith((".", "_"))):
                    identity = (status.st_dev, status.st_ino)
                    if identity not in seen:
                        seen.add(identity)
                        pending.append((child.path, left and left - 1))

    def open(self, path: str, *, seekable: bool = True) -> BinaryIO:
        return Path(path).open("rb")

    def create(self, path: str) -> BinaryIO:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        return Path(path).open("wb")

    def seal(self, file: BinaryIO) -> None:
        file.flush()
        os.fsync(file.fileno())
        file.close()

    def replace(self, path: str, content: bytes) -> None:
        draft = f"{path}.tmp"
        with self.create(draft) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        self.move(draft, path)
        self.settle(str(Path(path).parent))

    def move(self, source: str, target: str) -> None:
        try:
            Path(source).replace(target)
        except FileNotFoundError:
            if Path(target).parent.is_dir():
                raise
            Path(target).parent.mkdir(parents=True)
            Path(source).replace(target)

    def settle(self, directory: str) -> None:
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def delete(self, path: str) -> None:
        Path(path).unlink(missing_ok=True)

    def prune(self, directory: str) -> None:
        for folder, _, _ in os.walk(directory, topdown=False):
            try:
                Path(folder).rmdir()
            except OSError:
                continue


def _entry(path: str, found: os.stat_result) -> Entry:
    return Entry(path, found.st_size, found.st_mtime_ns, found.st_ino)


class ArrowStorage(Storage):
    """Object stores by pyarrow: a file is there when it is closed, a move is a copy and a delete.

    HDFS is for reading only, since a small file cannot be replaced there at one stroke.
    """

    def __init__(self, system: pafs.FileSystem, prefix: str = "") -> None:
        self.system = system
        self.prefix = prefix

    def stat(self, path: str) -> Entry | None:
        info = self.system.get_file_info(path)
        return _of(info) if info.type == pafs.FileType.File else None

    def is_directory(self, path: str) -> bool:
        return bool(self.system.get_file_info(path).type == pafs.FileType.Directory)

    def names(self, directory: str) -> list[str]:
        return sorted(info.base_name for info in self._list(directory, recursive=False))

    def walk(self, root: str, depth: int | None = None, hidden: bool = False) -> Iterator[Entry]:
        for info in self._list(root, recursive=depth != 1):
            above = PurePosixPath(info.path).relative_to(root).parts[:-1]
            too_deep = depth is not None and len(above) >= depth
            skipped = not hidden and any(part.startswith((".", "_")) for part in above)
            if info.type == pafs.FileType.File and not too_deep and not skipped:
                yield _of(info)

    def _list(self, directory: str, recursive: bool) -> list[pafs.FileInfo]:
        selector = pafs.FileSelector(directory, allow_not_found=True, recursive=recursive)
        return sorted(self.system.get_file_info(selector), key=lambda info: str(info.path))

    def open(self, path: str, *, seekable: bool = True) -> BinaryIO:
        opened = self.system.open_input_file if seekable else self.system.open_input_stream
        raw = opened(path) if seekable else opened(path, compression=None)
        return cast(BinaryIO, raw if seekable else io.BufferedReader(raw, 1 << 20))

    def create(self, path: str) -> BinaryIO:
        self.system.create_dir(str(PurePosixPath(path).parent), recursive=True)
        return cast(BinaryIO, self.system.open_output_stream(path, compression=None))

    def seal(self, file: BinaryIO) -> None:
        file.close()

    def replace(self, path: str, content: bytes) -> None:
        self.system.create_dir(str(PurePosixPath(path).parent), recursive=True)
        with self.system.open_output_stream(path, compression=None) as stream:
            stream.write(content)

    def move(self, source: str, target: str) -> None:
        self.system.create_dir(str(PurePosixPath(target).parent), recursive=True)
        self.system.move(source, target)

    def settle(self, directory: str) -> None:
        """A finished upload is durable."""

    def delete(self, path: str) -> None:
        if self.stat(path) is not None:
            self.system.delete_file(path)

    def prune(self, directory: str) -> None:
        if self.is_directory(directory) and not any(self.walk(directory, hidden=True)):
            self.system.delete_dir(directory)


def _of(info: Any) -> Entry:
    return Entry(info.path, info.size or 0, info.mtime_ns or 0)


def outside(error: OSError, doing: str, url: str) -> ConnectError:
    """An error of the file system as the user's: what we were doing, to which file."""
    detail = str(error)
    text = detail.lower()
    if isinstance(error, PermissionError) or "access denied" in text or "forbidden" in text:
        hint = "the user that runs Penstock needs permission for it"
        return Permanent(f"cannot {doing} {url}", code="no-permission", detail=detail, hint=hint)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        hint = "free some space; nothing is lost, the pipeline goes on from here"
        return Transient(f"could not {doing} {url}", code="disk-full", detail=detail, hint=hint)
    if error.errno == errno.EROFS:
        return Permanent(f"cannot {doing} {url}", code="read-only", detail=detail)
    if isinstance(error, FileNotFoundError):
        return Permanent(f"cannot {doing} {url}", code="file-missing", detail=detail)
    if isinstance(error, NotADirectoryError | IsADirectoryError | FileExistsError):
        return Permanent(f"cannot {doing} {url}", code="not-a-directory", detail=detail)
    return Transient(f"could not {doing} {url}", detail=detail)
