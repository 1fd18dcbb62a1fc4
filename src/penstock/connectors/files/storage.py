"""Storage: the file operations of the connector.

Every change is one method call, so that tests can stop the program before and after each change.
"""

from __future__ import annotations

import errno
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

from penstock.core.errors import ConnectError, Permanent, Transient

MAX_NAME_BYTES, MAX_PATH_BYTES = 255, 4095
"""The maximum sizes of a name and of a path in local file systems."""


@dataclass(frozen=True)
class Entry:
    """A file. `modified` is in nanoseconds since 1970.

    `inode` identifies a renamed file, with `device` also a linked one. Both are 0 if a storage has
    no links. `is_link` states whether the path has a symbolic link.
    """

    path: str
    size: int
    modified: int
    inode: int = 0
    device: int = 0
    is_link: bool = False

    @property
    def identity(self) -> object:
        """The same for all paths of a file."""
        return (self.device, self.inode) if self.inode else self.path


class Storage(ABC):
    """A file system. Paths are absolute in the storage and use slashes."""

    prefix = ""
    survives_fork = False
    """Whether a fork of this process can read files that this process has opened."""

    def excess(self, path: str) -> str | None:
        """Returns the limit of names that a path exceeds; None if a file can have the path.

        The default are the limits of local file systems.
        """
        longest = max(len(name.encode()) for name in path.split("/"))
        if longest > MAX_NAME_BYTES:
            return f"expected names of at most {MAX_NAME_BYTES} bytes, found {longest} bytes"
        return _excess(path, MAX_PATH_BYTES)

    def url(self, path: str) -> str:
        """Returns a path with the prefix of the storage."""
        return f"{self.prefix}{path}"

    @abstractmethod
    def stat(self, path: str) -> Entry | None:
        """Returns a file; None if it does not exist."""

    @abstractmethod
    def is_directory(self, path: str) -> bool:
        """Returns whether a directory exists."""

    @abstractmethod
    def names(self, directory: str) -> list[str]:
        """Returns the names in a directory; none if it does not exist."""

    @abstractmethod
    def walk(
        self,
        root: str,
        depth: int | None = None,
        hidden: bool = False,
        match: Callable[[str], bool] | None = None,
    ) -> Iterator[Entry]:
        """Yields the files at most `depth` levels below `root` (1: directly in it).

        With `match` only the files whose path it accepts. Directories whose names start with a dot
        or an underscore are skipped without `hidden`.
        """

    @abstractmethod
    def open(self, path: str, *, seekable: bool = True) -> BinaryIO:
        """Opens a file for reading."""

    @abstractmethod
    def create(self, path: str) -> BinaryIO:
        """Creates a file and its parent directories. It is durable after `close_durably`."""

    @abstractmethod
    def close_durably(self, file: BinaryIO) -> None:
        """Closes a created file and syncs its content to disk."""

    @abstractmethod
    def replace(self, path: str, content: bytes) -> None:
        """Writes a small file atomically."""

    @abstractmethod
    def move(self, source: str, target: str) -> None:
        """Moves a file. A complete file is visible at either path, or for a moment at both."""

    def append(self, source: str, target: str, start: int | None) -> None:
        """Appends `source` to `target` durably, then deletes it.

        `start` is None at the first attempt, later the size of `target` before that attempt. Then a
        beginning of `source` that is already there is not repeated. Raises OSError if the storage
        cannot extend files.
        """
        raise OSError(errno.ENOTSUP, "the storage cannot extend files")

    @abstractmethod
    def sync_directory(self, directory: str) -> None:
        """Syncs a directory to disk, so that moves into it are durable."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Deletes a file if it exists."""

    @abstractmethod
    def prune(self, directory: str) -> None:
        """Removes a directory and its subdirectories if they are empty."""

    def probe(self, path: str) -> None:
        """Writes and deletes a file, and leaves nothing. Raises OSError if it cannot be written."""
        self.replace(path, b"")
        self.delete(path)

    def read(self, path: str) -> bytes | None:
        """Returns the content of a small file; None if it does not exist."""
        if self.stat(path) is None:
            return None
        with self.open(path) as file:
            return file.read()

    @contextmanager
    def convert_errors(self, operation: str, url: str) -> Iterator[None]:
        """Converts OSError to Transient or Permanent."""
        try:
            yield
        except OSError as error:
            raise self.convert_error(error, operation, url) from error

    def convert_error(self, error: OSError, operation: str, url: str) -> ConnectError:
        """Returns the error for an OSError of an operation on a file."""
        detail = str(error)
        text = detail.lower()
        if isinstance(error, PermissionError) or "access denied" in text or "forbidden" in text:
            hint = "Grant the permission to the user that runs Penstock."
            return Permanent(
                f"cannot {operation} {url}", code="authorization", detail=detail, hint=hint
            )
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            hint = "Free disk space. The pipeline resumes without data loss."
            return Transient(
                f"could not {operation} {url}", code="disk-full", detail=detail, hint=hint
            )
        if error.errno == errno.EROFS:
            return Permanent(f"cannot {operation} {url}", code="read-only", detail=detail)
        if isinstance(error, FileNotFoundError):
            return Permanent(f"cannot {operation} {url}", code="missing-file", detail=detail)
        if isinstance(error, NotADirectoryError | IsADirectoryError | FileExistsError):
            return Permanent(f"cannot {operation} {url}", code="not-a-directory", detail=detail)
        if error.errno == errno.ENAMETOOLONG:
            return Permanent(f"cannot {operation} {url}", code="path-too-long", detail=detail)
        return Transient(f"could not {operation} {url}", detail=detail)


def _excess(path: str, limit: int) -> str | None:
    """Returns the limit of a path in bytes that the path exceeds, or None."""
    size = len(path.encode())
    return f"expected a path of at most {limit} bytes, found {size} bytes" if size > limit else None
