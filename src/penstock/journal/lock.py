"""Who appends to a journal: one process at a time."""

from __future__ import annotations

import fcntl
import time
from pathlib import Path
from typing import IO

from penstock.core.errors import StateError

_LET_GO = 10.0
"""Seconds in which a process that was told to end lets go of its journal."""
_PAUSE = 0.05


def locked(directory: Path) -> IO[bytes]:
    """A file that owns the journal until it is closed, or until the process ends.

    Raises StateError while another process has it, after some seconds.
    """
    file = (directory / "lock").open("wb")
    until = time.monotonic() + _LET_GO
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                file.close()
                raise StateError(
                    f"another process appends to the journal in {directory}", code="journal-in-use"
                ) from None
            time.sleep(_PAUSE)
        else:
            return file
