"""Directories for what a run needs only while it runs; what a killed run left is swept up later."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

_PREFIX = "penstock-"
_LOCK = "lock"
_LONGEST = 80


class Scratch:
    """A directory of this user only, short enough to hold the address of a socket.

    It is locked for as long as its owner lives, which is how a left one is told from a used one.
    So it is for as long as a process lives that its owner has given the file `lock`.
    """

    def __init__(self) -> None:
        base = Path(tempfile.gettempdir())
        if len(str(base)) > _LONGEST:
            base = Path("/tmp")
        _sweep(base)
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
        self._lock = (self.path / _LOCK).open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    @property
    def lock(self) -> int:
        """The open file that locks it, for `pass_fds`."""
        return self._lock.fileno()

    def close(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def _sweep(base: Path) -> None:
    for left in base.glob(f"{_PREFIX}*/{_LOCK}"):
        with suppress(OSError), left.open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left.parent, ignore_errors=True)
