"""The directory of one server, by which what a killed test run left over is found."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import tempfile
from contextlib import suppress
from pathlib import Path

import psutil

ALL = Path(tempfile.gettempdir()) / f"penstock-servers-{os.getuid()}"


class Directory:
    """An empty directory whose name says which test run it belongs to."""

    def __init__(self, name: str) -> None:
        end_leftovers()
        owner = f"{os.getpid()}-{started(os.getpid())}"
        self.path = Path(tempfile.mkdtemp(prefix=f"{name}-{owner}-", dir=ALL))
        self.path.chmod(0o755)

    def remember(self, pid: int) -> None:
        """Writes down the server's process, which leads a group, for runs that come later."""
        with suppress(psutil.NoSuchProcess):
            (self.path / "pid").write_text(f"{pid}-{started(pid)}")

    def remove(self) -> None:
        """Removes it with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)


@functools.cache
def end_leftovers() -> None:
    """Ends the servers of test runs that are no more, and removes their directories."""
    ALL.mkdir(mode=0o755, exist_ok=True)
    for path in ALL.iterdir():
        _, pid, start, _ = path.name.rsplit("-", 3)
        if not lives(f"{pid}-{start}"):
            _end(path)


def _end(path: Path) -> None:
    with suppress(OSError, ValueError):
        server = (path / "pid").read_text()
        if lives(server):
            os.killpg(int(server.partition("-")[0]), signal.SIGKILL)
    shutil.rmtree(path, ignore_errors=True)


def started(pid: int) -> int:
    """Returns the start time of a process: a later process may have the same number."""
    return int(psutil.Process(pid).create_time())


def lives(process: str) -> bool:
    """Whether the process written as "number-start" is still running."""
    pid, start = map(int, process.split("-"))
    try:
        ended = psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
        return not ended and abs(started(pid) - start) <= 2
    except psutil.NoSuchProcess:
        return False
