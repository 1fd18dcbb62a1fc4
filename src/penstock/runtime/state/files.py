"""Access to files of a state directory: errors of the file system as StateError."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.core.errors import StateError

FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turns errors of the file system while reading into StateError."""
    try:
        yield
    except OSError as error:
        raise StateError(
            f"cannot read {path}: {error.strerror}",
            code="unreadable-state",
            hint="Grant read permission to this user, or run as the owner of the state.",
        ) from error


def read_if_exists(path: Path) -> str | None:
    """Returns the text of a file; None without the file. Raises StateError."""
    with reading(path):
        try:
            return path.read_text()
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
