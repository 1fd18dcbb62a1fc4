"""Offset log and commit log of a query: the content of its batches, on disk before they are used.

Spark writes an entry of either log to a temporary file and renames the file, without fsync.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from penstock.core.files.durable import replace_durably, sync


class OffsetLog:
    """The offset log and the commit log in the checkpoint of a query, on a local disk."""

    def __init__(self, checkpoint: Path) -> None:
        self._checkpoint = checkpoint

    @property
    def planned(self) -> int | None:
        """The number of the last batch in the offset log."""
        return last_number(self._checkpoint / "offsets")

    def numbers(self) -> list[int]:
        """Returns the numbers of the batches in the offset log, in order."""
        return _numbers(self._checkpoint / "offsets")

    def end_offsets(self, number: int) -> dict[str, Mapping[str, Any]]:
        """Returns the end offset of each source in a batch, as Spark stores it."""
        text = self._path(number).read_text("utf-8")
        return dict(_parse_offsets(text))

    def watermark(self, number: int) -> int:
        """Returns the watermark of a batch, in milliseconds since 1970."""
        text = self._path(number).read_text("utf-8")
        return int(json.loads(text.splitlines()[1])["batchWatermarkMs"])

    def time(self, number: int) -> int:
        """Returns the time at which a batch was planned, in milliseconds since 1970."""
        text = self._path(number).read_text("utf-8")
        return int(json.loads(text.splitlines()[1])["batchTimestampMs"])

    def settings(self, number: int) -> dict[str, str]:
        """Returns the settings of Spark that a batch was planned with, and later ones keep."""
        text = self._path(number).read_text("utf-8")
        return dict(json.loads(text.splitlines()[1]).get("conf", {}))

    def replace_setting(self, number: int, name: str, value: str) -> None:
        """Replaces a setting of a batch, atomically and durably."""
        path = self._path(number)
        version, header, *offsets = path.read_text("utf-8").split("\n")
        metadata = json.loads(header)
        metadata["conf"][name] = value
        # Without a checksum Spark reads the file as it is.
        path.with_name(f".{number}.crc").unlink(missing_ok=True)
        replace_durably(path, "\n".join([version, json.dumps(metadata), *offsets]))

    def remove_after(self, number: int) -> None:
        """Removes the entries of the batches after a batch."""
        for planned in reversed(self.numbers()):
            if planned > number:
                self._path(planned).with_name(f".{planned}.crc").unlink(missing_ok=True)
                self._path(planned).unlink()
        sync(self._checkpoint / "offsets")

    def content(self, number: int) -> str:
        """Returns a digest of the offsets between which a batch reads its sources."""
        try:
            start = self.end_offsets(number - 1)
        except FileNotFoundError:
            start = {}
        text = json.dumps([start, self.end_offsets(number)], sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def is_empty(self, number: int, start: Mapping[str, Mapping[str, Any]]) -> bool:
        """Returns whether a batch ends at the offsets at which it begins.

        `start` are the offsets at which the first batch begins.
        """
        first = {name: offset for name, offset in start.items() if offset}
        begin = self.end_offsets(number - 1) if number else first
        return begin == self.end_offsets(number)

    def content_of_entries(self, number: int) -> str:
        """Returns the digest of `content` for a log of any format version. Raises OSError."""
        try:
            start = self._entry(number - 1)
        except FileNotFoundError:
            start = []
        text = json.dumps([start, self._entry(number)])
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def _entry(self, number: int) -> list[str]:
        """Returns the offsets of an entry as text, after the lines of its version and its time."""
        text = self._path(number).read_text("utf-8")
        return text.splitlines()[2:]

    def _path(self, number: int) -> Path:
        return self._checkpoint / "offsets" / str(number)

    def sync_planned(self, number: int) -> None:
        """Makes the entry of a batch in the offset log durable."""
        self._sync_entry("offsets", number)

    def sync_committed(self, number: int) -> None:
        """Makes the entry of a batch in the commit log durable."""
        self._sync_entry("commits", number)

    def sync_identity(self) -> None:
        """Makes the ID of the query and the directories of the checkpoint durable."""
        sync(self._checkpoint / "metadata")
        for directory in (self._checkpoint, *list(self._checkpoint.parents)[:3]):
            sync(directory)

    def _sync_entry(self, log: str, number: int) -> None:
        directory = self._checkpoint / log
        sync(directory / str(number))
        sync(directory / f".{number}.crc")
        sync(directory)


def last_number(log: Path) -> int | None:
    """Returns the number of the last entry of a log; None without entries."""
    return max(_numbers(log), default=None)


def _numbers(log: Path) -> list[int]:
    try:
        return sorted(int(path.name) for path in log.iterdir() if path.name.isdigit())
    except FileNotFoundError:
        return []


def _parse_offsets(text: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Parses an entry of the offset log, version 2: two lines, then `NAME:JSON` lines."""
    for line in text.splitlines()[2:]:
        name, _, value = line.partition(":")
        offset: dict[str, Any] = json.loads(value)
        if offset:
            yield name, offset
