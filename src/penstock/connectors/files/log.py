"""Discovery log: the files of a source in the order of their discovery.

An offset of the source is a number of lines of this log, with a digest of these lines. The log is
append-only and shared by all queries that read the source. An incomplete last line, left by a
crash, is truncated. The log of growing files is compacted: for old lines it keeps only the latest
state of each file. A line `{"archived": N}` states that the files before offset N were deleted or
moved: their paths are unknown again, so that a later file of the same path is read. Paths below the
directory of the pipeline file are relative to it, so that a moved project resumes.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from penstock.connectors.files.file_range import FileRange
from penstock.core.errors import StateError
from penstock.core.files.durable import create_directory_durably
from penstock.core.files.private_files import FILE_MODE, open_private
from penstock.core.paths import Project
from penstock.sdk.object_store import is_cloud

COMPACTION_BYTES = 32_000_000
"""The size at which the log of growing files is compacted to half."""
HEADER_BYTES = 24
"""The first bytes of the log, `{"n": 1234, ...`, which change with each compaction."""


_DEFAULTS = {field.name: field.default for field in fields(FileRange)}
_SECOND = 10**9


class DiscoveryLog:
    """All discovered files, on disk at `path`, or in memory without a path.

    `prefixes` has the prefixes of URLs in the log of earlier versions, each with that of now.
    """

    def __init__(
        self, path: Path | None, project: Project | None = None, prefixes: Mapping[str, str] = {}
    ) -> None:
        self._path, self._prefixes = path, prefixes
        self._project = project or Project()
        self._restart(b"")

    def _restart(self, header: bytes) -> None:
        self._header = header
        self._read = 0
        self._base = 0
        self._base_digest = b""
        self._ranges: list[FileRange] = []
        self._digests: list[bytes] = []
        self._numbers: dict[str, int] = {}
        self.archived = 0
        self._by_path: dict[str, FileRange] = {}
        self.by_inode: dict[int, FileRange] = {}
        self.states: dict[tuple[str, int, int], FileRange] = {}
        """The last range of each generation of each growing file, in the order of the log."""

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self.last_range(path) is not None

    def last_range(self, path: str) -> FileRange | None:
        """Returns the last range of the file of a path or URL; None for an unknown file."""
        return self._by_path.get(self._project.relative(path))

    def __len__(self) -> int:
        return self._base + len(self._ranges)

    def ranges(self, start: int, end: int) -> Sequence[FileRange]:
        """Returns the files between two offsets. Raises StateError if the log lacks them."""
        if start < self._base and self._path is not None:
            self._restart(b"")
        if end > len(self):
            self.refresh()
        if end > len(self) or start < self._base:
            raise self.missing_error(start, end)
        return self._ranges[start - self._base : end - self._base]

    def digest(self, end: int) -> str:
        """Returns a digest of all files before an offset. Raises StateError if the log lacks it."""
        self.ranges(end, end)
        count = end - self._base
        return (self._digests[count - 1] if count else self._base_digest).hex()

    def missing_error(self, start: int, end: int) -> StateError:
        """Returns the error for offsets that the log lacks."""
        if self._path is None:
            return StateError(
                "the discovery log was in memory only and is lost",
                code="no-state",
                hint='Set a state directory: .option("state", DIRECTORY).',
            )
        return StateError(
            f"expected files {start} to {end} in the discovery log, "
            f"found files {self._base} to {len(self)}",
            detail=str(self._path),
            hint="Reset the state with --fresh.",
        )

    def discard(self, before: int) -> None:
        """Releases the memory of files before an offset."""
        if self._path is not None and before > self._base:
            count = before - self._base
            self._base_digest = self._digests[count - 1]
            del self._ranges[:count], self._digests[:count]
            self._base = before

    def refresh(self) -> int:
        """Reads lines that other processes appended.

        Returns the number of bytes of an incomplete last line.
        """
        if self._path is None or not self._path.exists():
            return 0
        with self._path.open("rb") as file:
            header = file.read(HEADER_BYTES)
            if header != self._header:
                self._restart(header)
            file.seek(self._read)
            data = file.read()
        complete = data.rfind(b"\n") + 1
        for line in data[:complete].splitlines():
            self._parse_line(line)
        self._read += complete
        return len(data) - complete

    def append(self, ranges: Sequence[FileRange]) -> None:
        """Appends files durably. The caller holds `locked`."""
        if self._path is not None and ranges:
            content = b"".join(
                self._encode_line(len(self) + index, range_) for index, range_ in enumerate(ranges)
            )
            with open_private(self._path, "ab") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            self._read += len(content)
        for range_ in ranges:
            self._add(range_)

    def archive(self, before: int) -> None:
        """Forgets the paths of the files before an offset, durably."""
        with self.locked():
            if before <= self.archived:
                return
            if self._path is not None:
                line = _encode({"n": len(self), "archived": before})
                with self._path.open("ab") as file:
                    file.write(line)
                    file.flush()
                    os.fsync(file.fileno())
                self._read += len(line)
            self._forget(before)

    def _forget(self, before: int) -> None:
        self.archived = before
        for path in [path for path, number in self._numbers.items() if number < before]:
            range_ = self._by_path.pop(path)
            self.by_inode.pop(range_.inode, None)
            del self._numbers[path]

    def compact(self) -> None:
        """Compacts a large log of growing files. The caller holds `locked`."""
        if self._path is None or self._read < COMPACTION_BYTES:
            return
        lines = self._path.read_bytes().splitlines(keepends=True)
        half = len(lines) // 2
        past = DiscoveryLog(None, self._project)
        for line in lines[:half]:
            past._parse_line(line)
        header = {
            "n": len(past),
            "digest": past.digest(len(past)),
            "past": [self._to_dict(range_) for range_ in past.states.values()],
        }
        temporary = self._path.with_suffix(".tmp")
        with open_private(temporary, "wb") as file:
            file.write(_encode(header))
            file.writelines(lines[half:])
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)
        _sync_directory(self._path.parent)
        self.refresh()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Locks the log against other processes, refreshes it and truncates an incomplete line."""
        if self._path is None:
            yield
            return
        create_directory_durably(self._path.parent)
        with open_private(self._path.with_suffix(".lock"), "ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self._path.exists():
                self._path.touch(FILE_MODE)
                _sync_directory(self._path.parent)
            if self.refresh():
                os.truncate(self._path, self._read)
            yield

    def _parse_line(self, line: bytes) -> None:
        try:
            values = json.loads(line.decode("utf-8", "surrogateescape"))
            number = values.pop("n")
            if "past" in values:
                self._base = number
                self._base_digest = bytes.fromhex(values.get("digest", ""))
                self._index(self._current(self._from_dict(state)) for state in values["past"])
            elif number != len(self):
                raise ValueError(f"expected line {len(self)}, found line {number}")
            elif "archived" in values:
                self._forget(int(values["archived"]))
            else:
                self._add(self._from_dict(values))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StateError(
                "the discovery log is corrupt",
                detail=f"{self._path}: {error}",
                hint="Reset the state with --fresh.",
            ) from error

    def _add(self, logged: FileRange) -> None:
        self._digests.append(self._next_digest(logged))
        range_ = self._current(logged)
        self._numbers[self._project.relative(range_.path)] = len(self)
        self._ranges.append(range_)
        self._index([range_])

    def _current(self, logged: FileRange) -> FileRange:
        """Returns a range of earlier versions as `CloudStorage` finds its file now.

        Its time had fractions of a second, and URLs of Azure had no account.
        """
        if not is_cloud(logged.path):
            return logged
        starts = (prefix for prefix in self._prefixes if logged.path.startswith(prefix))
        start = next(starts, "")
        path = f"{self._prefixes.get(start, '')}{logged.path.removeprefix(start)}"
        return replace(logged, path=path, modified=logged.modified // _SECOND * _SECOND)

    def _next_digest(self, range_: FileRange) -> bytes:
        identity = (
            self._project.relative(range_.path), range_.size, range_.modified, range_.start,
            range_.stop, range_.inode, range_.generation, range_.head_hash, range_.block_hash,
        )  # fmt: skip
        last = self._digests[-1] if self._digests else self._base_digest
        return blake2b(last + repr(identity).encode(), digest_size=8).digest()

    def _index(self, ranges: Iterable[FileRange]) -> None:
        for range_ in ranges:
            self._by_path[self._project.relative(range_.path)] = range_
            if range_.inode:
                self.by_inode[range_.inode] = range_
            if range_.head_hash:
                key = (range_.path, range_.inode, range_.generation)
                self.states.pop(key, None)
                self.states[key] = range_

    def _encode_line(self, number: int, range_: FileRange) -> bytes:
        return _encode({"n": number, **self._to_dict(range_)})

    def _to_dict(self, range_: FileRange) -> dict[str, Any]:
        values = {key: value for key, value in asdict(range_).items() if value != _DEFAULTS[key]}
        return {**values, "path": self._project.relative(range_.path)}

    def _from_dict(self, values: dict[str, Any]) -> FileRange:
        return FileRange(**{**values, "path": self._project.absolute(values["path"])})


def _encode(values: dict[str, Any]) -> bytes:
    return (json.dumps(values, ensure_ascii=False) + "\n").encode("utf-8", "surrogateescape")


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
