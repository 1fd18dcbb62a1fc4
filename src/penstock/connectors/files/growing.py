"""Growing files: appended lines, also after rotation, copying, compression and truncation."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import BinaryIO

import structlog

from penstock.connectors.files.copies import Copies, GrowingFile, longest_copied, read_archive
from penstock.connectors.files.file_range import FileRange
from penstock.connectors.files.fingerprint import continues, fingerprint, head_fingerprint
from penstock.connectors.files.log import DiscoveryLog
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


class GrowingFiles:
    """Finds the lines that were appended since the last listing.

    A file continues a logged range if it has the same inode or path and the same fingerprint.
    A file with another inode is a copy if it has the fingerprint and a name of rotation, and the
    logged file no longer has this content. A compressed file that was read is not read again after
    a change of its modification time, inode or compression. Any other file is read from its start,
    unless it is compressed.
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
        self._copies = Copies(log.states, self._files)

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
        is_continued = logged is not None and self._is_continued(file, content, logged)
        archives = self._copies.read_archives(file, logged if is_continued else None)
        originals = self._copies.originals(file) if archives or not is_continued else []
        copied = read_archive(file, content, archives) if originals else None
        if copied is None and logged is not None and is_continued:
            yield from self._ranges(file, content, logged)
            return
        if any(self._copies.is_snapshot(file, content, range_) for range_ in originals):
            return
        copied = copied or self._copied(file, content, originals)
        if copied is not None:
            yield from self._copied_ranges(file, content, copied)
        else:
            yield from self._new_ranges(file, content, logged)

    def _copied(
        self, file: GrowingFile, content: BinaryIO, originals: Sequence[FileRange]
    ) -> FileRange | None:
        """Returns the range that an uncompressed copy continues."""
        copied = longest_copied(file, content, originals)
        if copied is None or self._copies.is_elsewhere(copied, file):
            return None
        return self._copies.rewritten(file, content, after=copied)

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
        logged, originals = self._logged(file), self._copies.originals(file)
        if logged is not None and (logged.inode != file.entry.inode or not logged.head_hash):
            logged = None
        all_exist = all(self._copies.is_elsewhere(range_, file) for range_ in originals)
        if all_exist and logged is None and not self._copies.read_archives(file, None):
            return []
        try:
            with file.open() as content:
                if logged is not None and not continues(content, logged):
                    logged = None
                copied = read_archive(file, content, self._copies.read_archives(file, logged))
                if copied is None and logged is not None:
                    return list(self._marked_ranges(file, content, logged, logged.generation))
                if copied is None:
                    copied = longest_copied(file, content, originals)
                    if copied is not None and self._copies.is_elsewhere(copied, file):
                        return []
                if copied is not None:
                    return list(self._copied_ranges(file, content, copied))
        except DecodeError:
            return []
        return [] if all_exist else [self._skipped(file, originals)]

    def _skipped(self, file: GrowingFile, originals: Sequence[FileRange]) -> FileRange:
        """Returns the mark of a compressed file that continues no logged range."""
        entry = file.entry
        if entry.modified > max(range_.modified for range_ in originals):
            logger.warning(
                f"skipping {file.url}: a compressed file is read only if it continues a file that "
                "was found before its compression",
                hint="Decompress the file under another name that the pattern includes.",
            )
        return FileRange(file.url, entry.size, entry.modified, stop=0, inode=entry.inode)

    def _ranges(self, file: GrowingFile, content: BinaryIO, last: FileRange) -> Iterator[FileRange]:
        """Yields the ranges after `last`.

        An empty range marks a file without complete records: a copy of it is recognized.
        """
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
        if not state.stop and not file.is_compressed:
            head = head_fingerprint(content, file.entry.size)
            if head is not None and head.head_size > last.head_size:
                yield replace(state, **asdict(head))

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
        generation = self._new_generation(file).generation
        yield from self._marked_ranges(file, content, copied, generation)

    def _marked_ranges(
        self, file: GrowingFile, content: BinaryIO, last: FileRange, generation: int
    ) -> Iterator[FileRange]:
        stop, line = last.stop or 0, last.line + last.lines
        mark = replace(
            self._moved(file, last), start=stop, line=line, lines=0, generation=generation
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
