"""Temporary directories of a run; directories of killed runs are removed later.

A directory is created under a hidden name and renamed once its lock is held, so that another
process never finds a directory of a living owner without the lock.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from penstock.core.errors import UserError

_PREFIX = "penstock-"
_NEW_PREFIX = ".penstock-"
_LOCK = "scratch.lock"
_MAX_PATH = 40
"""The maximum length of the parent. An address of a socket has at most 103 bytes; Spark adds 43."""
_CREATION_SECONDS = 3600.0
"""The age after which a directory under a hidden name is abandoned."""


class Scratch:
    """A private temporary directory whose path is short enough for the address of a socket.

    The owner holds a lock on the directory, as does every process that inherits the file `lock`.
    A directory without a lock is abandoned.
    """

    def __init__(self) -> None:
        """Creates the directory. Raises UserError if no directory can be written."""
        try:
            base = Path(tempfile.gettempdir())
            if len(str(base)) > _MAX_PATH:
                base = Path("/tmp")
            _remove_abandoned(base)
            new = Path(tempfile.mkdtemp(prefix=_NEW_PREFIX, dir=base))
        except OSError as error:
            raise UserError(
                f"cannot write temporary files: {error.strerror}", code="no-temporary-files",
                hint="Make /tmp writable, such as by an empty volume of the container, or set "
                f"TMPDIR to a writable directory of at most {_MAX_PATH} characters.",
            ) from error  # fmt: skip
        self._lock = (new / _LOCK).open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.path = new.rename(new.with_name(new.name.removeprefix(".")))

    @property
    def lock(self) -> int:
        """Descriptor of the locked file, for `pass_fds`."""
        return self._lock.fileno()

    def close(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def _remove_abandoned(base: Path) -> None:
    """Removes directories of this user that contain an unlocked lock file."""
    created_before = time.time() - _CREATION_SECONDS
    paths = [
        *base.glob(f"{_PREFIX}*/{_LOCK}"),
        *(path for path in base.glob(f"{_NEW_PREFIX}*/{_LOCK}") if _is_older(path, created_before)),
    ]
    for path in paths:
        with suppress(OSError), path.open("r+") as lock:
            if os.fstat(lock.fileno()).st_uid != os.getuid():
                continue
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path.parent, ignore_errors=True)


def _is_older(path: Path, moment: float) -> bool:
    try:
        return path.stat().st_mtime < moment
    except OSError:
        return False
