"""Locks of changes: one change of a pipeline at a time."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.core.errors import StateError

WAIT_SECONDS = 5.0


class ChangeLocks:
    """A lock for each subject: the ID of a pipeline, or the name of a new one."""

    def __init__(self) -> None:
        self._locks: dict[str, threading.Lock] = defaultdict(threading.Lock)

    @contextmanager
    def changing(self, subject: str) -> Iterator[None]:
        """Excludes other changes during the block.

        Raises StateError if another change, such as a long check, takes longer than 5 seconds.
        """
        lock = self._locks[subject]
        if not lock.acquire(timeout=WAIT_SECONDS):
            raise StateError(
                "another change of the pipeline is under way", code="change-under-way",
                hint="Try again when it has ended.",
            )  # fmt: skip
        try:
            yield
        finally:
            lock.release()
