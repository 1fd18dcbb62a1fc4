"""Discovery: new files, and new lines of growing files."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from penstock.connectors.files.compression import codec_of
from penstock.connectors.files.file_range import FileRange
from penstock.connectors.files.growing import GrowingFiles
from penstock.connectors.files.listing import Location
from penstock.connectors.files.log import DiscoveryLog
from penstock.connectors.files.pace import ListingPace
from penstock.connectors.files.segments import (
    SEGMENT_BYTES,
    SpannedLines,
    record_segments,
    segments,
)
from penstock.connectors.files.storage import Entry, Storage
from penstock.sdk.format import START_BYTES

LARGE_FILE_BYTES = 4 * SEGMENT_BYTES
STAT_THREADS = 16
"""The number of parallel requests for the size and the time of files."""


@dataclass(frozen=True)
class Discovery:
    """Lists the files of all locations of a source."""

    locations: Sequence[Location]
    order: str
    min_age: float
    tail: bool
    is_divisible: Callable[[bytes], bool]
    """Whether a file with this start can be split into ranges of lines."""
    archive: str = ""
    """The URL of the directory of moved files, which are not read again."""
    spanned: SpannedLines | None = None
    """The records of the files, if they have several lines."""

    def entries(self) -> list[tuple[Storage, Entry]]:
        """Returns the files of at least `min_age`, without duplicates, in the configured order."""
        return self._of_age(self.listing())

    def _of_age(self, listing: list[tuple[Storage, Entry]]) -> list[tuple[Storage, Entry]]:
        newest = self._newest()
        return [
            (storage, entry)
            for storage, entry in listing
            if newest is None or entry.modified <= newest
        ]

    def _newest(self) -> int | None:
        return time.time_ns() - int(self.min_age * 1e9) if self.min_age else None

    def listing(self, known: Container[str] = ()) -> list[tuple[Storage, Entry]]:
        """Returns the files of any age except those with a known URL.

        A file with several links has one path: the first one without symbolic links.
        """
        entries: dict[str, tuple[Storage, Entry]] = {}
        for location in self.locations:
            storage = location.storage
            with storage.convert_errors("list files at", location.url()):
                for entry in location.files(known):
                    url = storage.url(entry.path)
                    if not (self.archive and url.startswith(self.archive)):
                        entries.setdefault(url, (storage, entry))
        files: dict[object, tuple[Storage, Entry]] = {}
        for file in sorted(entries.values(), key=lambda file: (file[1].is_link, file[1].path)):
            files.setdefault((file[0].prefix, file[1].identity), file)
        return sorted(files.values(), key=lambda file: self._sort_key(file[1]))

    def _sort_key(self, entry: Entry) -> tuple[int, str]:
        return (0 if self.order == "name" else entry.modified), entry.path

    def new_ranges(self, log: DiscoveryLog, pace: ListingPace) -> list[FileRange]:
        """Returns the files and ranges that the log lacks."""
        if self.tail:
            with pace.measure():
                growing = GrowingFiles(log, self.listing(), self.is_divisible, self.spanned)
                changed = growing.changed(self._newest())
            return [range_ for file in changed for range_ in growing.new_ranges(file)]
        with pace.measure():
            new = self._of_age(self.listing(log))
            new = [file for file in new if not _is_linked(*file, log)]
        return [range_ for storage, entry in new for range_ in self._split(storage, entry)]

    def notified_ranges(self, urls: Iterable[str], log: DiscoveryLog) -> list[FileRange]:
        """Returns the files of URLs that the log lacks, or has with another content.

        URLs of other locations and of files that were deleted are left out.
        """
        distinct = [*dict.fromkeys(urls)]
        with ThreadPoolExecutor(STAT_THREADS) as threads:
            found = [*zip(distinct, threads.map(self._at, distinct), strict=True)]
        new = [
            (file[0], file[1])
            for url, file in found
            if file is not None and not _is_known(file[1], log.last_range(url))
        ]
        new.sort(key=lambda file: self._sort_key(file[1]))
        return [range_ for storage, entry in new for range_ in self._split(storage, entry)]

    def _at(self, url: str) -> tuple[Storage, Entry] | None:
        """Returns the file of a URL; None if it does not exist in a location."""
        if self.archive and url.startswith(self.archive):
            return None
        for location in self.locations:
            storage = location.storage
            path = url[len(storage.prefix) :]
            if url.startswith(storage.prefix) and location.has(path):
                with storage.convert_errors("read", url):
                    entry = storage.stat(path)
                return None if entry is None else (storage, entry)
        return None

    def _split(self, storage: Storage, entry: Entry) -> Iterator[FileRange]:
        """Yields a file, or the ranges of a large file."""
        url = storage.url(entry.path)
        if entry.size < LARGE_FILE_BYTES or codec_of(url, "auto") is not None:
            yield FileRange(url, entry.size, entry.modified, inode=entry.inode)
            return
        line = 0
        with storage.convert_errors("read", url), storage.open(entry.path) as file:
            if not self.is_divisible(file.read(START_BYTES)):
                yield FileRange(url, entry.size, entry.modified, inode=entry.inode)
                return
            if self.spanned is None:
                ranges = segments(file, 0, entry.size, whole=True)
            else:
                ranges = record_segments(file, 0, entry.size, "file", self.spanned.last_start)
            for start, stop, lines, _ in ranges:
                yield FileRange(
                    url, entry.size, entry.modified, start, stop, line, lines, entry.inode
                )  # fmt: skip
                line += lines


def _is_known(entry: Entry, known: FileRange | None) -> bool:
    """Returns whether a file is one of the log. Times are compared in seconds, as object stores
    state milliseconds in listings only."""
    if known is None:
        return False
    second = 10**9
    return (entry.size, entry.modified // second) == (known.size, known.modified // second)


def _is_linked(storage: Storage, entry: Entry, log: DiscoveryLog) -> bool:
    """Returns whether a new path is a link to a file that was discovered under another path."""
    known = log.by_inode.get(entry.inode) if entry.inode else None
    if known is None or not known.path.startswith(storage.prefix):
        return False
    current = storage.stat(known.path[len(storage.prefix) :])
    return current is not None and current.identity == entry.identity
