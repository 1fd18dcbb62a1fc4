"""The base class of sources of lake tables: files of versions, in the order of the versions."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from penstock.sdk.capability import Capability
from penstock.sdk.file_partitions import divide_files
from penstock.sdk.lakes.config import LakeSourceConfig
from penstock.sdk.lakes.files import FileOfVersion
from penstock.sdk.polling import PolledSource
from penstock.sdk.source import Offset

C = TypeVar("C", bound=LakeSourceConfig)


class LakeSource(PolledSource[C]):
    """A source that reads a table at a version, then the versions after it.

    An offset has the next `version`, and the number of its files that were read as `file`.
    """

    parallelism = "a file"
    lag_unit = "files"
    locates_rows = True
    capabilities = frozenset(
        {
            Capability.REPLAY,
            Capability.LIMIT,
            Capability.BOUNDED,
            Capability.TAIL,
            Capability.ORDERED,
            Capability.ROWS,
        }
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.carries_operations = self.has_complete_changes = self.config.changes

    @abstractmethod
    def versions(self, start: Offset, end: Offset) -> Iterator[tuple[int, Sequence[FileOfVersion]]]:
        """Yields the versions of a range in order, each with all of its files."""

    def offset_within(self, start: Offset, version: int, file: int) -> Offset:
        """Returns the offset before a file of a version after `start`."""
        return {**start, "version": version, "file": file}

    @property
    def skips_gaps(self) -> bool:
        """Whether removed files and versions are dead letters."""
        return self.config.on_data_loss == "continue"

    @property
    def is_fixed(self) -> bool:
        """Whether only the version that the options name is read."""
        return not self.config.watch and self.config.is_pinned

    @property
    def poll_interval(self) -> float | None:
        return self.config.interval if self.config.watch else None

    def limit_batch(self, start: Offset, end: Offset) -> Offset:
        max_files = self.config.max_files or math.inf
        max_size = self.config.max_size or math.inf
        if max_files == max_size == math.inf:
            return end
        count = size = 0
        for version, files in self._ranges(start, end):
            first = start["file"] if version == start["version"] else 0
            is_divisible = all(file.kind == "insert" for file in files)
            for group in [[each] for each in files] if is_divisible else [files]:
                size += sum(file.size for file in group)
                if count and (count + len(group) > max_files or size > max_size):
                    return self.offset_within(start, version, first)
                count, first = count + len(group), first + len(group)
        return end

    def partitions(self, start: Offset, end: Offset) -> Sequence[tuple[FileOfVersion, ...]]:
        files = (file for _, files in self._ranges(start, end) for file in files)
        return divide_files(files, lambda file: file.size)

    def min_offset(self, first: Offset, second: Offset) -> Offset:
        return min(first, second, key=lambda offset: (offset["version"], offset["file"]))

    def lag(self, current: Offset, latest: Offset) -> int:
        return sum(len(files) for _, files in self._ranges(current, latest))

    def _ranges(self, start: Offset, end: Offset) -> Iterator[tuple[int, Sequence[FileOfVersion]]]:
        """Yields the versions of a range with their files in the range."""
        for version, files in self.versions(start, end):
            first = start["file"] if version == start["version"] else 0
            stop = end["file"] if version == end["version"] else len(files)
            if first < stop:
                yield version, files[first:stop]
