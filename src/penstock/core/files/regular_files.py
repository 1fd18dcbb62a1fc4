"""Regular files, as opposed to named pipes, sockets and devices, whose reading may never end."""

from __future__ import annotations

import errno
import stat
from pathlib import Path

_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
    stat.S_IFDIR: "a directory",
}


def kind_of_file(mode: int) -> str | None:
    """Returns the kind of a file that is not regular, by its `st_mode`; None for a regular file."""
    return None if stat.S_ISREG(mode) else _KINDS.get(stat.S_IFMT(mode), "another kind of file")


def check_regular_file(path: Path) -> None:
    """Raises OSError if a file does not exist or is not regular."""
    kind = kind_of_file(path.stat().st_mode)
    if kind is not None:
        raise OSError(errno.EINVAL, f"expected a regular file, found {kind}", str(path))
