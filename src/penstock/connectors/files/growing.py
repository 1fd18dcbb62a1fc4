"""Growing files: appended lines, also after rotation, copying, compression and truncation."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import BinaryIO

import structlog

from penstock.connectors.files.compression import codec_of
from penstock.connectors.files.content import open_content
from penstock.connectors.files.fingerprint import (
    continues,
    fingerprint,
    is_prefix,
    may_be_rotated,
    possible_prefixes,
    rotation_prefix,
)
from penstock.connectors.files.log import DiscoveryLog, FileRange
from penstock.connectors.files.segments import (
    End,
    Segment,
    SpannedLines,
    record_segments,
    segments,
)
from penstock.connectors.files.storage import Entry, Storage
from penstock.core.errors import DecodeError, Permanent
from penstock.sdk.format import START_BYTES

logger = structlog.get_logger(__name__)


@dataclass(frozen=True)
class GrowingFile:
    """A file of a listing."""

    storage: Storage
    entry: Entry

    @property
    def url(self) -> str:
        return self.storage.url(self.entry.path)

    @property
    def is_compressed(self) -> bool:
        return codec_of(self.entry.path, "auto") is not None

    def open(self) -> BinaryIO:
        """Opens the decompressed content."""
        return open_content(self.storage, self.entry.path)

    def is_logged_as(self, range_: FileRange) -> bool:
        """Returns whether the file is unchanged since the discovery of its last range."""
        entry = self.entry
        same_content = (entry.size, entry.modified) == (range_.size, range_.modified)
        same_file = entry.inode == range_.inode and (bool(entry.inode) or self.url == range_.path)
        return same_content and same_file and (self.is_compressed or self.url == range_.path)


class GrowingFiles:
    """Finds the lines that were appended since the last listing.

    A file continues a logged range if it has the same inode or path and the same fingerprint.
    A file with another inode is a copy if it has the fingerprint and a name of rotation, and the
    logged file no longer has this content. Any other file is read from its start, unless it is
    compressed.
    """

    def __init__(
        self,
        log: DiscoveryLog,
        listing: Sequence[tuple[Storage, Entry]],
        is_divisible: Callable[[bytes], bool],
        spanned: SpannedLines | None = None,
    ) -> None:
        self._log = log
        self._is_divisible = is_divisible
        self._spanned = spanned
        self._files = [GrowingFile(storage, entry) for storage, entry in listing]
        self._by_url = {file.url: file for file in self._files}
        self._by_inode = {file.entry.inode: file for file in self._files if file.entry.inode}

    def changed(self, newest: int | None = None) -> list[GrowingFile]:
        """Returns the changed files that were last modified at `newest` or before."""
        return [
            file
            for file in self._files
            if newest is None or file.entry.modified <= newest
            if (logged := self._logged(file)) is None
            or not file.is_logged_as(logged)
            or self._has_idle_record(file, logged)
        ]

    def _has_idle_record(self, file: GrowingFile, logged: FileRange) -> bool:
        """Returns whether the last record of an unchanged file is now complete."""
        if self._spanned is None or file.is_compressed or file.entry.size <= (logged.stop or 0):
            return False
        return self._spanned.is_idle(file.entry.modified)

    def _logged(self, file: GrowingFile) -> FileRange | None:
        return self._log.by_inode.get(file.entry.inode) or self._log.last_range(file.url)

    def new_ranges(self, file: GrowingFile) -> list[FileRange]:
        """Returns the complete new lines of a file; none if it was deleted since its listing."""
        with file.storage.convert_errors("read", file.url):
            try:
                if file.is_compressed:
                    return self._archived(file)
                with file.open() as content:
                    return list(self._read_ranges(file, content))
            except FileNotFoundError:
                return []

    def _read_ranges(self, file: GrowingFile, content: BinaryIO) -> Iterator[FileRange]:
        logged = self._logged(file)
        if logged is not None and self._is_continued(file, content, logged):
            yield from self._ranges(file, content, logged)
            return
        originals = self._originals(file)
        if any(self._is_snapshot(file, content, range_) for range_ in originals):
            return
        copied = self._longest_copied(file, content, originals)
        if copied is not None and self._current(copied) is None:
            yield from self._copied_ranges(file, content, copied)
        else:
            yield from self._new_ranges(file, content, logged)

    def _new_ranges(
        self, file: GrowingFile, content: BinaryIO, logged: FileRange | None
    ) -> Iterator[FileRange]:
        """Yields the ranges of a file from its start."""
        ranges = list(self._ranges(file, content, self._new_generation(file)))
        if ranges and logged is not None and logged.path == file.url:
            reason = "rewritten"
            if self._is_replaced(file, logged):
                reason = "replaced"
            elif file.entry.size < (logged.stop or 0):
                reason = "truncated"
            logger.info(
                "reading a file from its start", path=file.url, reason=reason, read=logged.stop
            )
        yield from ranges

    def _archived(self, file: GrowingFile) -> list[FileRange]:
        """Returns the unread lines of a compressed file that continues a logged range.

        An empty range marks a file that continues none.
        """
        originals = self._originals(file)
        if all(self._current(range_) is not None for range_ in originals):
            return []
        try:
            with file.open() as content:
                copied = self._longest_copied(file, content, originals)
                if copied is not None:
                    waits = self._current(copied) is not None
                    return [] if waits else list(self._copied_ranges(file, content, copied))
        except DecodeError:
            return []
        if file.entry.modified > max(range_.modified for range_ in originals):
            logger.warning(
                f"skipping {file.url}: a compressed file is read only if it continues a file that "
                "was partly read",
                hint="Decompress the file under another name that the pattern includes.",
            )
        entry = file.entry
        return [FileRange(file.url, entry.size, entry.modified, stop=0, inode=entry.inode)]

    def _ranges(self, file: GrowingFile, content: BinaryIO, last: FileRange) -> Iterator[FileRange]:
        """Yields the ranges after `last`."""
        state = self._moved(file, last)
        if not last.stop:
            self._check_start(file, content)
        for start, stop, lines, ends_inside in list(self._segments(file, content, last)):
            state = replace(
                state,
                start=start,
                stop=stop,
                line=state.line + state.lines,
                lines=lines,
                starts_inside=state.ends_inside,
                ends_inside=ends_inside,
                **asdict(fingerprint(content, stop)),
            )
            yield state

    def _segments(self, file: GrowingFile, content: BinaryIO, last: FileRange) -> Iterator[Segment]:
        start, size = last.stop or 0, sys.maxsize if file.is_compressed else file.entry.size
        if self._spanned is None:
            return segments(content, start, size, file.is_compressed)
        end: End = "line" if self._spanned.is_idle(file.entry.modified) else "record"
        end = "file" if file.is_compressed else end
        return record_segments(
            content, start, size, end, self._spanned.last_start, last.ends_inside
        )

    def _check_start(self, file: GrowingFile, content: BinaryIO) -> None:
        content.seek(0)
        if not self._is_divisible(content.read(START_BYTES)):
            raise Permanent(
                f"cannot read {file.url}: tail expects UTF-8, found another encoding, or values of "
                "several lines",
                code="wrong-encoding",
                hint="Write lines of UTF-8, or read complete files: watch: true instead of tail.",
            )

    def _copied_ranges(
        self, file: GrowingFile, content: BinaryIO, copied: FileRange
    ) -> Iterator[FileRange]:
        """Yields an empty range that marks a copy as continued, and the ranges after it."""
        logger.info("continuing a copied file", path=file.url, original=copied.path)
        stop, line = copied.stop or 0, copied.line + copied.lines
        generation = self._new_generation(file).generation
        mark = replace(
            self._moved(file, copied), start=stop, line=line, lines=0, generation=generation
        )
        yield mark
        yield from self._ranges(file, content, mark)

    def _moved(self, file: GrowingFile, range_: FileRange) -> FileRange:
        entry = file.entry
        return replace(
            range_, path=file.url, size=entry.size, modified=entry.modified, inode=entry.inode
        )

    def _is_continued(self, file: GrowingFile, content: BinaryIO, logged: FileRange) -> bool:
        """Returns whether a file continues its logged range."""
        is_truncated = file.entry.size < (logged.stop or 0)
        if self._is_replaced(file, logged) or is_truncated:
            return False
        return continues(content, logged)

    @staticmethod
    def _is_replaced(file: GrowingFile, logged: FileRange) -> bool:
        return bool(file.entry.inode and logged.inode and file.entry.inode != logged.inode)

    def _new_generation(self, file: GrowingFile) -> FileRange:
        previous = self._log.last_range(file.url)
        generation = previous.generation + 1 if previous else 0
        return FileRange(file.url, 0, 0, stop=0, generation=generation)

    def _originals(self, file: GrowingFile) -> list[FileRange]:
        """Returns the last ranges of the files of which rotation may make a file a copy."""
        return [
            range_
            for prefix in possible_prefixes(file.url)
            for range_ in self._states_by_prefix.get(prefix, ())
            if may_be_rotated(range_.path, file.url)
        ]

    @cached_property
    def _states_by_prefix(self) -> dict[str, list[FileRange]]:
        states: dict[str, list[FileRange]] = {}
        for range_ in self._log.states.values():
            states.setdefault(rotation_prefix(range_.path), []).append(range_)
        return states

    def _longest_copied(
        self, file: GrowingFile, content: BinaryIO, originals: Sequence[FileRange]
    ) -> FileRange | None:
        """Returns the last range whose content a file starts with."""
        size = sys.maxsize if file.is_compressed else file.entry.size
        longest_first = sorted(originals, key=lambda range_: range_.stop or 0, reverse=True)
        copied = (
            range_
            for range_ in longest_first
            if (range_.stop or 0) <= size and continues(content, range_)
        )
        return next(copied, None)

    def _is_snapshot(self, file: GrowingFile, content: BinaryIO, range_: FileRange) -> bool:
        """Returns whether a logged file, unchanged, starts with the content of a file.

        Such a file is a copy, perhaps incomplete, of a file that is about to be truncated.
        """
        original = self._current(range_)
        if original is None or original.url == file.url or original.is_compressed:
            return False
        if file.entry.size > original.entry.size:
            return False
        with original.open() as longer:
            return is_prefix(content, file.entry.size, longer)

    def _current(self, range_: FileRange) -> GrowingFile | None:
        """Returns the file that still has the content of a range, under its own or a new name."""
        file = self._by_inode.get(range_.inode) or self._by_url.get(range_.path)
        if file is None or file.entry.inode != range_.inode:
            return None
        if file.is_logged_as(range_):
            return file
        if file.is_compressed or file.entry.size < (range_.stop or 0):
            return None
        with file.open() as content:
            return file if continues(content, range_) else None
