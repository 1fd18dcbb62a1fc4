"""The lock of a state directory: one run at a time. The file holds the process of the run."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from penstock.core.errors import StateError
from penstock.core.files.private_files import create_directory, open_private
from penstock.core.process_identity import process_identity

ALREADY_RUNNING = "already-running"
_MAX_OWNER = 4096
"""The size of the process in a lock file, at most."""


def acquire_lock(file: IO[str], root: Path, timeout: float) -> None:
    """Locks the file of a directory. Raises StateError if another run holds the lock.

    The lock ends with the process, also when the process is killed. `timeout` is in
    seconds.
    """
    until = time.monotonic() + timeout
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() < until:
                time.sleep(0.1)
                continue
            file.seek(0)
            owner = parse_owner(file.read())
            raise running_error(owner, f"state directory: {root}") from None
        return


def running_error(owner: Mapping[str, Any], state: str) -> StateError:
    """Returns the error of a run whose state another run owns."""
    return StateError(
        f"this pipeline is already running (process {owner.get('pid', '?')} on "
        f"{owner.get('host', '?')}, since {owner.get('since', '?')})",
        code=ALREADY_RUNNING,
        detail=state,
        hint="Stop the other run with penstock stop, or wait for its end. A run with another "
        "runtime.state reads and writes all rows again.",
    )


@contextmanager
def hint_if_running(hint: str) -> Iterator[None]:
    """Gives an error of `running_error` within the block another hint than that of a run."""
    try:
        yield
    except StateError as error:
        if error.code == ALREADY_RUNNING:
            error.hint = hint
        raise


@contextmanager
def local_lock(path: Path) -> Iterator[bool]:
    """Locks a directory if no other process does. Yields whether the lock is held."""
    create_directory(path.parent)
    with open_private(path, "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def write_owner(file: IO[str], since: str) -> None:
    """Writes this process without a buffer, which would be written again after a failure."""
    pid = os.getpid()
    owner = {
        "pid": pid, "host": socket.gethostname(), "since": since, "identity": process_identity(pid),
    }  # fmt: skip
    os.ftruncate(file.fileno(), 0)
    os.write(file.fileno(), json.dumps(owner).encode())
    os.fsync(file.fileno())


def read_owner(path: Path) -> dict[str, Any] | None:
    """Returns pid, host, start and identity of the run that holds the lock; None without a run."""
    text = read_owner_text(path)
    return None if text is None else parse_owner(text)


def read_owner_text(path: Path) -> bytes | None:
    """Returns the content of a lock file that a run holds; None without a run."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # does not wait for a pipe
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        os.read(file, 1)  # raises an error for a directory
    except BlockingIOError:
        return os.read(file, _MAX_OWNER)
    finally:
        os.close(file)
    return None


def parse_owner(text: str | bytes) -> dict[str, Any]:
    """Returns the fields of a lock file; none of one that its run has not written yet."""
    found = _parse_json(text)
    return found if isinstance(found, dict) else {}


def _parse_json(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
