"""Division of files among the partitions of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
PARTITION_BYTES = 4_000_000
"""Small files are read in one partition up to about this size."""


def divide_files(
    files: Iterable[T], size: Callable[[T], int], partition_bytes: int = PARTITION_BYTES
) -> list[tuple[T, ...]]:
    """Returns files, or parts of files, in partitions of about this size, in order."""
    partitions: list[list[T]] = []
    free_bytes = 0
    for file in files:
        if not partitions or size(file) > free_bytes:
            partitions.append([])
            free_bytes = partition_bytes
        partitions[-1].append(file)
        free_bytes -= size(file)
    return [tuple(partition) for partition in partitions]
