"""The discovery log: the files of a source in the order in which they were found.

A position of the source is a number of lines of this log. It is append-only and shared by all
queries that read the source; a line that a crash tore is cut off. The log of growing files, which
would grow with them, is shortened now and then: of what lies far back it keeps the last word on
each file.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from penstock.core.errors import StateError

LONGEST = 32_000_000
"""At this size, in bytes, the log of growing files is shortened to half."""
BEGINNING = 24
"""So many first bytes, `{"n": 1234, ...`, tell a log from the same one before it was shortened."""


@dataclass(frozen=True, slots=True)
class Found:
    """A file, or with `stop` the bytes of it that `line` lines come before.

    `node` and `head` (a hash of the first `heads` bytes) tell a renamed file from a new one;
    `life` counts how often a file of this name started again.
    """

    path: str
    size: int
    modified: int
    start: int = 0
    stop: int | None = None
    line: int = 0
    lines: int = 0
    node: int = 0
    life: int = 0
    heads: int = 0
    head: str = ""

    @property
    def bytes(self) -> int:
        """How much there is to read."""
        return self.size if self.stop is None else self.stop - self.start

    @property
    def last(self) -> bool:
        """Whether nothing of the file, as it was found, comes after this."""
        return self.stop is None or self.stop == self.size

    @property
    def origin(self) -> str:
        """The name that records of this file have in dead letters."""
        return f"{self.shown}#{self.life}" if self.life else self.shown

    @property
    def shown(self) -> str:
        """The path as text, whatever bytes its name has."""
        return self.path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


_DEFAULTS = {each.name: each.default for each in fields(Found)}


class Log:
    """All files found so far; in memory only where there is no `path`."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._restart(b"")

    def _restart(self, beginning: bytes) -> None:
        self._beginning = beginning
        self._read = 0
        self._base = 0
        self._found: list[Found] = []
        self.by_path: dict[str, Found] = {}
        self.by_node: dict[int, Found] = {}

    def __len__(self) -> int:
        return self._base + len(self._found)

    def between(self, start: int, end: int) -> Sequence[Found]:
        """The files from one position to another. Raises StateError if the log lost them."""
        if start < self._base and self._path is not None:
            self._restart(b"")
        if end > len(self):
            self.refresh()
        if end > len(self) or start < self._base:
            raise self.lost(start, end)
        return self._found[start - self._base : end - self._base]

    def lost(self, start: int, end: int) -> StateError:
        """The error that this log does not reach from one position to another."""
        if self._path is None:
            return StateError(
                "the list of files read so far was in memory only, and is gone",
                code="no-state",
                hint='keep it in a directory: .option("state", DIRECTORY)',
            )
        return StateError(
            f"the list of files read so far has files {self._base} to {len(self)}, "
            f"not {start} to {end}",
            detail=str(self._path),
            hint="the state directory is damaged; start over with --fresh",
        )

    def forget(self, before: int) -> None:
        """Lets go of what lies before a position, in memory."""
        if self._path is not None and before > self._base:
            del self._found[: before - self._base]
            self._base = before

    def refresh(self) -> int:
        """Takes in what others have appended. Gives the number of torn bytes at the end."""
        if self._path is None or not self._path.exists():
            return 0
        with self._path.open("rb") as file:
            beginning = file.read(BEGINNING)
            if beginning != self._beginning:
                self._restart(beginning)
            file.seek(self._read)
            news = file.read()
        whole = news.rfind(b"\n") + 1
        for line in news[:whole].splitlines():
            self._take(line)
        self._read += whole
        return len(news) - whole

    def append(self, news: Sequence[Found]) -> None:
        """Adds files, durably. Call it under `locked`."""
        if self._path is not None and news:
            content = b"".join(_line(len(self) + at, found) for at, found in enumerate(news))
            with self._path.open("ab") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            self._read += len(content)
        for found in news:
            self._remember(found)

    def shorten(self) -> None:
        """Halves a long log of growing files. Call it under `locked`."""
        if self._path is None or self._read < LONGEST:
            return
        lines = self._path.read_bytes().splitlines(keepends=True)
        cut = len(lines) // 2
        past = Log(None)
        for line in lines[:cut]:
            past._take(line)
        known = {(f.path, f.node): f for f in (*past.by_path.values(), *past.by_node.values())}
        header = {"n": len(past), "past": [_short(found) for found in known.values()]}
        draft = self._path.with_suffix(".tmp")
        with draft.open("wb") as file:
            file.write(_bytes(header))
            file.writelines(lines[cut:])
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path)
        _sync(self._path.parent)
        self.refresh()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the log against all other processes, up to date and without a torn end."""
        if self._path is None:
            yield
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.with_suffix(".lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self._path.exists():
                self._path.touch()
                _sync(self._path.parent)
            if self.refresh():
                os.truncate(self._path, self._read)
            yield

    def _take(self, line: bytes) -> None:
        try:
            values = json.loads(line.decode("utf-8", "surrogateescape"))
            number = values.pop("n")
            if "past" in values:
                self._base = number
                self._index(Found(**each) for each in values["past"])
            elif number != len(self):
                raise ValueError(f"file {number} follows file {len(self) - 1}")
            else:
                self._remember(Found(**values))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StateError(
                "the list of files read so far is damaged",
                detail=f"{self._path}: {error}",
                hint="start over with --fresh",
            ) from error

    def _remember(self, found: Found) -> None:
        self._found.append(found)
        self._index([found])

    def _index(self, all_found: Iterable[Found]) -> None:
        for found in all_found:
            self.by_path[found.path] = found
            if found.node:
                self.by_node[found.node] = found


def _line(number: int, found: Found) -> bytes:
    return _bytes({"n": number, **_short(found)})


def _bytes(values: dict[str, Any]) -> bytes:
    return (json.dumps(values, ensure_ascii=False) + "\n").encode("utf-8", "surrogateescape")


def _short(found: Found) -> dict[str, Any]:
    return {key: value for key, value in asdict(found).items() if value != _DEFAULTS[key]}


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
