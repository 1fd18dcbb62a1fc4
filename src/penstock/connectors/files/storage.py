"""File systems behind one small set of operations.

Each operation that changes something is a method here and nothing else is, so that a test can
stop the program before and after every one of them.
"""

from __future__ import annotations

import errno
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import BinaryIO

from penstock.core.errors import ConnectError, Permanent, Transient


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

    @contextmanager
    def told(self, doing: str, url: str) -> Iterator[None]:
        """Raises errors of the file system within it as the user's."""
        try:
            yield
        except OSError as error:
            raise self.outside(error, doing, url) from error

    def outside(self, error: OSError, doing: str, url: str) -> ConnectError:
        """An error of the file system as the user's: what we were doing, to which file."""
        detail = str(error)
        text = detail.lower()
        if isinstance(error, PermissionError) or "access denied" in text or "forbidden" in text:
            hint = "the user that runs Penstock needs permission for it"
            return Permanent(
                f"cannot {doing} {url}", code="no-permission", detail=detail, hint=hint
            )
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
