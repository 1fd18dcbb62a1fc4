"""Storage on the local disk."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO

import structlog

from penstock.connectors.files.storage import Entry, Storage
from penstock.core.errors import Permanent
from penstock.core.files.durable import sync
from penstock.core.files.regular_files import kind_of_file
from penstock.core.path_permission import check_path

CHUNK_BYTES = 1 << 20
logger = structlog.get_logger(__name__)


class LocalStorage(Storage):
    """Files of this machine."""

    survives_fork = True

    def stat(self, path: str) -> Entry | None:
        try:
            status = Path(path).stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        if stat.S_ISDIR(status.st_mode):
            return None
        if (kind := kind_of_file(status.st_mode)) is not None:
            raise Permanent(
                f"cannot read {path}: expected a regular file, found {kind}",
                code="not-a-file",
                hint="Use a connector for messages, or write the data to a file.",
            )
        return _entry(path, status, Path(path).is_symlink())

    def is_directory(self, path: str) -> bool:
        return Path(path).is_dir()

    def names(self, directory: str) -> list[str]:
        try:
            return sorted(child.name for child in Path(directory).iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []

    def walk(
        self,
        root: str,
        depth: int | None = None,
        hidden: bool = False,
        match: Callable[[str], bool] | None = None,
    ) -> Iterator[Entry]:
        visited: set[tuple[int, int] | None] = {None}
        pending = [(root, depth, False)]
        linked: list[tuple[str, int | None, bool]] = []
        while pending or linked:
            directory, levels, is_link = pending.pop() if pending else linked.pop()
            if (identity := _identity(directory)) in visited:
                continue
            visited.add(identity)
            try:
                with os.scandir(directory) as scan:
                    children = sorted(scan, key=lambda child: child.name)
            except (FileNotFoundError, NotADirectoryError):
                continue
            for child in children:
                is_link_below = is_link or child.is_symlink()
                if not child.is_dir():
                    if (match is None or match(child.path)) and (
                        entry := regular_entry(child, is_link_below)
                    ):
                        yield entry
                elif levels != 1 and (hidden or not child.name.startswith((".", "_"))):
                    below = (child.path, levels and levels - 1, is_link_below)
                    (linked if is_link_below else pending).append(below)

    def open(self, path: str, *, seekable: bool = True) -> BinaryIO:
        check_path(path)  # a pattern may have matched a link
        return Path(path).open("rb")

    def create(self, path: str) -> BinaryIO:
        check_path(path)
        _create_directory(Path(path).parent)
        return Path(path).open("wb")

    def close_durably(self, file: BinaryIO) -> None:
        file.flush()
        os.fsync(file.fileno())
        file.close()

    def replace(self, path: str, content: bytes) -> None:
        temporary = f"{path}.tmp"
        with self.create(temporary) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        self.move(temporary, path)
        self.sync_directory(str(Path(path).parent))

    def move(self, source: str, target: str) -> None:
        try:
            Path(source).replace(target)
        except FileNotFoundError:
            if Path(target).parent.is_dir():
                raise
            _create_directory(Path(target).parent)
            Path(source).replace(target)

    def append(self, source: str, target: str, start: int | None) -> None:
        _create_directory(Path(target).parent)
        with Path(source).open("rb") as content, Path(target).open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if start is not None:
                content.seek(_count_equal_bytes(content, file, start))
            shutil.copyfileobj(content, file, CHUNK_BYTES)
            file.flush()
            os.fsync(file.fileno())
        self.delete(source)

    def sync_directory(self, directory: str) -> None:
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def delete(self, path: str) -> None:
        Path(path).unlink(missing_ok=True)

    def probe(self, path: str) -> None:
        missing = [folder for folder in Path(path).parents if not folder.exists()]
        super().probe(path)
        for folder in missing:
            with suppress(OSError):
                folder.rmdir()

    def prune(self, directory: str) -> None:
        for folder, _, _ in os.walk(directory, topdown=False):
            try:
                Path(folder).rmdir()
            except OSError:
                continue


def _count_equal_bytes(content: BinaryIO, file: BinaryIO, start: int) -> int:
    """Returns the size of the beginning of `content` that is after `start`; 0 for other bytes."""
    file.seek(start)
    count = 0
    while piece := content.read(CHUNK_BYTES):
        written = file.read(len(piece))
        if not piece.startswith(written):
            return 0
        count += len(written)
        if len(written) < len(piece):
            break
    return count


def _create_directory(path: Path) -> None:
    """Creates a directory and its missing parents durably, also while `prune` removes them."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        with suppress(PermissionError):
            sync(folder.parent)


def regular_entry(child: os.DirEntry[str], is_link: bool) -> Entry | None:
    """Returns a file; None with a warning if it is not regular, None if it was deleted."""
    try:
        status = child.stat()
    except FileNotFoundError:
        return None
    if (kind := kind_of_file(status.st_mode)) is not None:
        _warn_of_skipped_file(child.path, kind)
        return None
    return _entry(child.path, status, is_link)


def _identity(directory: str) -> tuple[int, int] | None:
    try:
        status = Path(directory).stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


@cache
def _warn_of_skipped_file(path: str, kind: str) -> None:
    """Warns once in a process."""
    logger.warning(f"skipping {path}: expected a regular file, found {kind}")


def _entry(path: str, status: os.stat_result, is_link: bool) -> Entry:
    return Entry(path, status.st_size, status.st_mtime_ns, status.st_ino, status.st_dev, is_link)
