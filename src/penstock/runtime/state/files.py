"""Access to files of a state directory: errors of the file system as StateError."""

from __future__ import annotations

import errno
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.core.errors import StateError

FULL = (errno.ENOSPC, errno.EDQUOT)
Stamp = tuple[int, int, int]
"""Inode, size and time of the last change in nanoseconds."""


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turns errors of the file system while reading into StateError."""
    try:
        yield
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> StateError:
    return StateError(
        f"cannot read {path}: {error.strerror}",
        code="unreadable-state",
        hint="Grant read permission to this user, or run as the owner of the state.",
    )


def stamp_of(path: Path) -> Stamp | None:
    """Returns a value that changes with a file; None without the file.

    Raises StateError, also for a pipe, whose reading would wait.
    """
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unreadable(path, error) from error
    if not stat.S_ISREG(found.st_mode):
        raise _unreadable(path, OSError(errno.EINVAL, "it is no file"))
    return found.st_ino, found.st_size, found.st_mtime_ns


def read_if_exists(path: Path) -> str | None:
    """Returns the text of a file; None without the file. Raises StateError."""
    with reading(path):
        try:
            with path.open("rb", buffering=0) as file:
                return file.read().decode()
        except (FileNotFoundError, NotADirectoryError):
            return None


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns errors of the file system while writing into StateError."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise StateError(
                f"the disk is full ({path})",
                code="disk-full",
                hint="Free disk space and run again. The run resumes.",
            ) from error
        raise StateError(
            f"cannot write {path}: {error.strerror}",
            code="unwritable-state",
            hint="Grant write permission, or set runtime.state to a writable directory.",
        ) from error
