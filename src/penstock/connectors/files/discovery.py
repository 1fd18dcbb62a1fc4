"""What is new among the files: new names, and new lines of files that grow."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import structlog

from penstock.connectors.files.compression import EXTENSIONS, codec_of
from penstock.connectors.files.listing import Location
from penstock.connectors.files.log import Found, Log
from penstock.connectors.files.storage import Entry, Storage

HEAD = 256
SEGMENT = 64_000_000
"""A large or growing file is read in pieces of about this many bytes."""
LARGE = 4 * SEGMENT
CHUNK = 1 << 20

logger = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Discovery:
    """Looks at all locations of a source."""

    locations: Sequence[Location]
    order: str
    settle: float
    tail: bool
    lines: bool = False
    """Whether records are lines, so that a large file can be read in pieces."""

    def entries(self) -> list[tuple[Storage, Entry]]:
        """The files that are there now and settled, each once, in the configured order."""
        youngest = time.time_ns() - int(self.settle * 1e9) if self.settle else None
        found: dict[str, tuple[Storage, Entry]] = {}
        for location in self.locations:
            storage = location.storage
            with storage.told("look for files at", location.url()):
                for entry in location.files():
                    if youngest is None or entry.modified <= youngest:
                        found.setdefault(storage.url(entry.path), (storage, entry))
        by_name = self.order == "name"
        key = (lambda e: (0, e[1].path)) if by_name else (lambda e: (e[1].modified, e[1].path))
        return sorted(found.values(), key=key)

    def news(self, log: Log) -> list[Found]:
        """What is not in the log yet."""
        if self.tail:
            return Growth(log).news(self.entries())
        return [
            piece
            for storage, entry in self.entries()
            if storage.url(entry.path) not in log.by_path
            for piece in self._whole(storage, entry)
        ]

    def _whole(self, storage: Storage, entry: Entry) -> Iterator[Found]:
        """A file, in pieces if it is large."""
        url = storage.url(entry.path)
        if not self.lines or entry.size < LARGE or codec_of(url, "auto") is not None:
            yield Found(url, entry.size, entry.modified, node=entry.node)
            return
        line = 0
        with storage.told("read", url), storage.open(entry.path) as file:
            for start, stop, lines in segments(file, 0, entry.size, whole=True):
                yield Found(
                    url, entry.size, entry.modified, start, stop, line, lines, entry.node
                )  # fmt: skip
                line += lines


class Growth:
    """Tells which bytes of growing files are new, through renames, rotation and truncation."""

    def __init__(self, log: Log) -> None:
        self._by_path = log.by_path
        self._by_node = log.by_node

    def news(self, entries: Iterable[tuple[Storage, Entry]]) -> list[Found]:
        """Whole new lines, in pieces."""
        return [
            piece
            for storage, entry in entries
            if not entry.path.lower().endswith(tuple(EXTENSIONS))
            for piece in self._pieces(storage, entry)
        ]

    def _pieces(self, storage: Storage, entry: Entry) -> Iterator[Found]:
        url = storage.url(entry.path)
        same = self._by_node.get(entry.node) or self._by_path.get(url)
        now = (url, entry.size, entry.modified, entry.node)
        if same is not None and now == (same.path, same.size, same.modified, same.node):
            return
        with storage.told("read", url), storage.open(entry.path) as file:
            at = self._continued(file, url, entry, same)
            heads = min(HEAD, entry.size)
            head = _hash(file, heads)
            for start, stop, lines in segments(file, at.stop or 0, entry.size):
                at = Found(
                    url, entry.size, entry.modified, start, stop, at.line + at.lines, lines,
                    entry.node, at.life, heads, head,
                )  # fmt: skip
                yield at

    def _continued(self, file: BinaryIO, url: str, entry: Entry, same: Found | None) -> Found:
        """The last piece of this file, or an empty one where it is new or starts again."""
        before = self._by_path.get(url)
        if same is not None:
            replaced = bool(entry.node and same.node and entry.node != same.node)
            shorter = entry.size < (same.stop or 0)
            if not replaced and not shorter and _hash(file, same.heads) == same.head:
                return same
            if same.path == url:
                reason = "replaced" if replaced else "truncated" if shorter else "rewritten"
                logger.info("a file starts again", path=url, reason=reason, read=same.stop)
        return Found(url, 0, 0, stop=0, life=before.life + 1 if before else 0)


def _hash(file: BinaryIO, size: int) -> str:
    file.seek(0)
    return hashlib.blake2b(file.read(size), digest_size=8).hexdigest()


def segments(
    file: BinaryIO, start: int, size: int, whole: bool = False
) -> Iterator[tuple[int, int, int]]:
    """Start, stop and number of lines of each piece of lines between two bytes.

    A last line without an end is left out, unless the file is `whole`.
    """
    file.seek(start)
    at = stop = start
    lines = 0
    while at < size and (chunk := file.read(min(CHUNK, size - at))):
        end = chunk.rfind(b"\n") + 1
        if end:
            lines += chunk.count(b"\n")
            stop = at + end
        at += len(chunk)
        if stop - start >= SEGMENT:
            yield start, stop, lines
            start, lines = stop, 0
    if whole and at > stop:
        stop, lines = at, lines + 1
    if stop > start:
        yield start, stop, lines
