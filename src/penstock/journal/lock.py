"""The lock of a journal: one writer at a time."""

from __future__ import annotations

import fcntl
import time
from pathlib import Path
from typing import IO

from penstock.core.errors import StateError
from penstock.core.files.private_files import open_private

_TIMEOUT = 10.0
"""Seconds to wait for a process that is about to release the lock."""
_POLL = 0.05


def acquire_lock(directory: Path) -> IO[bytes]:
    """Returns a locked file; the lock is held until the file is closed or the process ends.

    Raises StateError if another process holds the lock for ten seconds.
    """
    file = open_private(directory / "lock", "wb")
    deadline = time.monotonic() + _TIMEOUT
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                file.close()
                raise StateError(
                    f"another process holds the lock of the journal in {directory}",
                    code="journal-in-use",
                ) from None
            time.sleep(_POLL)
        else:
            return file
