"""The local disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from penstock.connectors.files.storage import Entry, Storage


class LocalStorage(Storage):
    """Files by the paths of this machine."""

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
