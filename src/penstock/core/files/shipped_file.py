"""Files of options, such as certificates, whose content is shipped to executors of a cluster."""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from penstock.core.files.private_files import create_directory, open_private

MAX_BYTES = 16 << 20
"""The maximum size of a file that is shipped. Machines need a larger one at its path."""
_SPARK_DIRECTORIES = "SPARK_LOCAL_DIRS"
"""The variable of a Python worker with the directories that Spark removes after the application."""

_runs = 0
"""The number of runs of this process whose files are shipped."""
_runs_lock = threading.Lock()


class ShippedFile(str):
    """The path of a file that a component reads, also in tasks.

    Within `shipping` a pickle contains the content of the file. On a machine that has no file with
    this content at this path, the unpickled value is the path of a private copy.
    """

    content: bytes | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        content = self.content
        if content is None and is_shipping():
            content = _read(Path(self))
        return _received, (str(self), content)


@contextmanager
def shipping() -> Iterator[None]:
    """Makes pickles of this process contain the content of files."""
    global _runs
    with _runs_lock:
        _runs += 1
    try:
        yield
    finally:
        with _runs_lock:
            _runs -= 1


def is_shipping() -> bool:
    """Returns whether pickles of this process contain the content of files."""
    return _runs > 0


def copy_files(files: Mapping[str, bytes], group: str = "") -> Path:
    """Returns the private directory of files with these paths below it, which never change.

    Files of one group have one directory, as long as their contents do not contradict.
    """
    directory = _directory(os.getpid()) / _digest(group)
    if not group or any(
        (directory / name).exists() and not has_content(directory / name, content)
        for name, content in files.items()
    ):
        directory = directory.with_name(_digest(repr(sorted(files.items()))))
    for name, content in files.items():
        path = directory / name
        if not path.exists():
            create_directory(path.parent)
            hidden = path.with_name(f".{path.name}")
            with open_private(hidden, "wb") as file:
                file.write(content)
            hidden.rename(path)
    return directory


def has_content(path: Path, content: bytes) -> bool:
    """Returns whether this machine has a file with this content at a path."""
    try:
        return path.stat().st_size == len(content) and path.read_bytes() == content
    except OSError:
        return False


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _read(path: Path) -> bytes | None:
    """Returns the content of a file; None without a file, or for one that is too large."""
    try:
        if path.is_file() and path.stat().st_size <= MAX_BYTES:
            return path.read_bytes()
    except OSError:
        pass
    return None


def _received(path: str, content: bytes | None) -> ShippedFile:
    """Returns the path of a file on this machine, or that of a copy of its content."""
    if content is None or has_content(Path(path), content):
        file = ShippedFile(path)
    else:
        name = Path(path).name
        file = ShippedFile(copy_files({name: content}) / name)
    file.content = content
    return file


@cache
def _directory(process: int) -> Path:
    """Returns the private directory of a process, where Spark removes it."""
    parent = os.environ.get(_SPARK_DIRECTORIES, "").partition(",")[0]
    return Path(tempfile.mkdtemp(prefix="penstock-", dir=parent or None))
