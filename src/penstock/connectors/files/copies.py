"""Copies of logged files: made by rotation, compressed, decompressed or rewritten."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO

from penstock.connectors.files.compression import codec_of, strip_compression_extension
from penstock.connectors.files.content import open_content
from penstock.connectors.files.file_range import FileRange
from penstock.connectors.files.fingerprint import (
    continues,
    is_prefix,
    may_be_rotated,
    possible_prefixes,
    rotation_prefix,
)
from penstock.connectors.files.storage import Entry, Storage
from penstock.core.errors import DecodeError


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
        return _is_compressed(self.entry.path)

    def open(self) -> BinaryIO:
        """Opens the decompressed content."""
        return open_content(self.storage, self.entry.path)

    def is_logged_as(self, range_: FileRange) -> bool:
        """Returns whether the file is unchanged since the discovery of its last range."""
        entry = self.entry
        same_content = (entry.size, entry.modified) == (range_.size, range_.modified)
        same_file = entry.inode == range_.inode and (bool(entry.inode) or self.url == range_.path)
        return same_content and same_file and (self.is_compressed or self.url == range_.path)


class Copies:
    """Finds the logged ranges of which a file may be a copy.

    `states` are the last ranges of all logged files in the order of the log, `files` the files of a
    listing.
    """

    def __init__(
        self, states: dict[tuple[str, int, int], FileRange], files: Sequence[GrowingFile]
    ) -> None:
        self._by_url = {file.url: file for file in files}
        self._by_inode = {file.entry.inode: file for file in files if file.entry.inode}
        self._states = states

    @cached_property
    def _by_prefix(self) -> dict[str, list[FileRange]]:
        by_prefix: dict[str, list[FileRange]] = {}
        for range_ in self._states.values():
            by_prefix.setdefault(rotation_prefix(range_.path), []).append(range_)
        return by_prefix

    def _related(self, file: GrowingFile) -> Iterator[FileRange]:
        for prefix in possible_prefixes(file.url):
            yield from self._by_prefix.get(prefix, ())

    def originals(self, file: GrowingFile) -> list[FileRange]:
        """Returns the last ranges of the files of which rotation may make a file a copy."""
        return [range_ for range_ in self._related(file) if may_be_rotated(range_.path, file.url)]

    def is_snapshot(self, file: GrowingFile, content: BinaryIO, range_: FileRange) -> bool:
        """Returns whether a logged file, unchanged, starts with the content of a file.

        Such a file is a copy, perhaps incomplete, of a file that is about to be truncated.
        """
        original = self.current(range_)
        if original is None or original.url == file.url or original.is_compressed:
            return False
        if file.entry.size > original.entry.size:
            return False
        with original.open() as longer:
            return is_prefix(content, file.entry.size, longer)

    def current(self, range_: FileRange) -> GrowingFile | None:
        """Returns the file that still has the content of a range, under its own or a new name."""
        file = self._by_inode.get(range_.inode) or self._by_url.get(range_.path)
        if file is None or file.entry.inode != range_.inode:
            return None
        if file.is_logged_as(range_):
            return file
        if not file.is_compressed and file.entry.size < (range_.stop or 0):
            return None
        try:
            with file.open() as content:
                return file if continues(content, range_) else None
        except DecodeError:
            return None

    def is_elsewhere(self, range_: FileRange, file: GrowingFile) -> bool:
        """Returns whether another file than `file` still has the content of a range."""
        current = self.current(range_)
        return current is not None and current.url != file.url

    def rewritten(self, file: GrowingFile, content: BinaryIO, after: FileRange) -> FileRange:
        """Returns the last range of a file that was rewritten, with another inode.

        Returns `after` if the file was not read under its present name later than this range.
        """
        for range_ in reversed(self._states.values()):
            if range_ == after:
                break
            is_longer = (range_.stop or 0) > (after.stop or 0)
            if range_.path != file.url or not is_longer or self.is_elsewhere(range_, file):
                continue
            if continues(content, range_):
                return range_
        return after

    def read_archives(self, file: GrowingFile, after: FileRange | None) -> list[FileRange]:
        """Returns the last ranges of the compressed files that a file may be in another form.

        Such a file has the same name without the extension of the compression; or both are
        compressed, and the logged one no longer exists. With `after` the ranges were logged later
        than this one.
        """
        stem = strip_compression_extension(file.url)
        found = []
        for range_ in reversed(self._states.values()):
            if range_ == after:
                break
            if not _is_compressed(range_.path) or not range_.stop:
                continue
            if rotation_prefix(range_.path) not in possible_prefixes(file.url):
                continue
            current = self.current(range_)
            known = range_.path if current is None else current.url
            is_same_name = strip_compression_extension(known) == stem
            if is_same_name or (current is None and file.is_compressed):
                found.append(range_)
        return found


def read_archive(
    file: GrowingFile, content: BinaryIO, archives: Sequence[FileRange]
) -> FileRange | None:
    """Returns the range of a compressed file that had the whole content of a file."""
    return next((range_ for range_ in archives if _ends(file, content, range_)), None)


def longest_copied(
    file: GrowingFile, content: BinaryIO, originals: Sequence[FileRange]
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


def _ends(file: GrowingFile, content: BinaryIO, range_: FileRange) -> bool:
    """Returns whether the content of a file ends with a range."""
    stop = range_.stop or 0
    if not file.is_compressed and file.entry.size != stop:
        return False
    if not continues(content, range_):
        return False
    content.seek(stop)
    return not content.read(1)


def _is_compressed(path: str) -> bool:
    return codec_of(path, "auto") is not None
