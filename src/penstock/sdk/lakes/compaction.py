"""Compaction: small files of a table are combined, on request or by a rule after commits."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from pydantic import Field

from penstock.core.errors import PenstockError, Transient
from penstock.core.units import ByteSize, PositiveDuration
from penstock.sdk.capability import Capability
from penstock.sdk.config import Config
from penstock.sdk.lakes.commits import Conflict
from penstock.sdk.retries import report_retry
from penstock.sdk.sink import Sink

DEFAULT_SIZE = 128 << 20
T = TypeVar("T")


class Compaction(Config):
    """The rule by which a sink combines small files."""

    files: int = Field(default=100, ge=2)
    """The number of files that can be combined at which they are."""
    size: ByteSize = Field(default=DEFAULT_SIZE, ge=1)
    """The size of the combined files. Larger files are not changed."""
    interval: PositiveDuration | None = None
    """The shortest time between two compactions. By default there is no limit."""


class CompactingConfig(Config):
    compact: Compaction | None = None
    """Combines small files after a commit: `{files: 100, size: 128MB}`. By default only
    `penstock compact` does."""


C = TypeVar("C", bound=CompactingConfig)


@dataclass(frozen=True)
class Compacted:
    """The numbers of files before and after a compaction."""

    removed: int = 0
    added: int = 0


class CompactingSink(Sink[C]):
    """A sink of a lake table, whose small files can be combined: its rows stay the same."""

    capabilities = frozenset(
        {
            Capability.ROWS,
            Capability.ORDERED,
            Capability.EXACTLY_ONCE,
            Capability.TRANSACTIONS,
            Capability.UPSERT,
            Capability.DELETE,
            Capability.REPLACE,
        }
    )
    _files_to_count = 0
    _next_time = 0.0

    @abstractmethod
    def small_files(self, size: int) -> int:
        """Returns the number of files that `compact` would combine."""

    @abstractmethod
    def compact(self, size: int) -> Compacted:
        """Combines small files of a partition up to a size, in one commit.

        Raises Conflict if another writer has changed the files, or Transient or Permanent.
        """

    def compact_by_rule(self, added: int) -> None:
        """Combines small files if the option `compact` requires it. Called after each commit.

        A failure is reported, and the next commit tries again.
        """
        rule = self.config.compact
        if rule is None:
            return
        self._files_to_count -= added
        if self._files_to_count > 0 or time.monotonic() < self._next_time:
            return
        try:
            count = self.small_files(rule.size)
            if count >= rule.files:
                self.compact(rule.size)
                self._next_time = time.monotonic() + (rule.interval or 0)
                count = 0
            self._files_to_count = (rule.files - count + 1) // 2  # With each file one more can be.
        except Conflict as error:
            report_retry(Transient("could not combine files", detail=str(error)))
        except PenstockError as error:
            report_retry(error)


def bins(files: Iterable[tuple[Hashable, int, T]], size: int) -> list[list[T]]:
    """Returns groups of at least two files of a partition that together have at most `size`.

    Each file has its partition and its size. Larger files are in no group.
    """
    partitions: dict[Hashable, list[tuple[int, T]]] = {}
    for partition, file_size, file in files:
        if file_size < size:
            partitions.setdefault(partition, []).append((file_size, file))
    found = [each for members in partitions.values() for each in _divide(members, size)]
    return [group for group in found if len(group) > 1]


def _divide(files: Iterable[tuple[int, T]], size: int) -> Iterable[list[T]]:
    group: list[T] = []
    total = 0
    for file_size, file in files:
        if group and total + file_size > size:
            yield group
            group, total = [], 0
        group.append(file)
        total += file_size
    yield group
