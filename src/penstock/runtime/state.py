"""The state directory of a pipeline: who owns it, what is in it, and what a run finds there.

lock                one run at a time
plan.json           the plan of the last run (see `plan.fingerprint`)
schemas.json        inferred schemas, pinned
checkpoints/QUERY/  Spark's own: offsets, commits, windows and joins
nodes/NODE/         what a component keeps
spool/QUERY/BATCH/  dead letters of batches that are under way
dead_letters/       dead letters
status.json         how the run is doing, for `penstock status`
stop                a request to stop, for the run to see
complete            the input has ended and all windows are closed
runs.jsonl          one line for each run
spark.log           Spark's own log
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from penstock import __version__
from penstock.core.errors import StateError

LAYOUT = 1
"""Grows when what is in the directory changes its form."""


class StateDirectory:
    """Paths and small files of one pipeline's state."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock: IO[str] | None = None

    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

    @property
    def spool(self) -> Path:
        return self.root / "spool"

    @property
    def dead_letters(self) -> Path:
        return self.root / "dead_letters"

    @property
    def log(self) -> Path:
        return self.root / "spark.log"

    def checkpoint(self, query: str) -> Path:
        """The directory of a query's checkpoint."""
        return self.checkpoints / query

    @contextmanager
    def locked(self, timeout: float = 0.3) -> Iterator[None]:
        """Owns the directory for a run. Raises StateError if another run does.

        The lock goes with the process, so one that was killed leaves none behind. Whoever asks
        for the `owner` holds it for a moment; `timeout` is longer than that.
        """
        self._create()
        path = self.root / "lock"
        with path.open("a+") as file:
            self._acquire(file, time.monotonic() + timeout)
            file.seek(0)
            file.truncate()
            json.dump({"pid": os.getpid(), "host": socket.gethostname(), "since": now()}, file)
            file.flush()
            self._lock = file
            try:
                self._check_layout()
                (self.root / "stop").unlink(missing_ok=True)
                yield
            finally:
                self._lock = None

    def owner(self) -> dict[str, Any] | None:
        """The run that owns the directory: its pid, host and since when; None if there is none."""
        path = self.root / "lock"
        if not path.exists():
            return None
        with path.open("r+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return _json(file.read()) or {}
        return None

    def read(self, name: str) -> Any:
        """A small JSON file of the directory; None if there is none."""
        try:
            return json.loads((self.root / name).read_text())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise StateError(
                f"{self.root / name} is damaged",
                code="damaged-state",
                detail=str(error),
                hint="penstock run --fresh starts over",
            ) from error

    def write(self, name: str, content: Any) -> None:
        """Replaces a small JSON file, all at once."""
        with writing(self.root / name):
            write_atomically(self.root / name, json.dumps(content, indent=1))

    def note_run(self, **facts: Any) -> None:
        """Adds a line to the history of runs."""
        path = self.root / "runs.jsonl"
        with writing(path), path.open("a") as file:
            file.write(json.dumps({"version": __version__, **facts}) + "\n")

    def committed(self, query: str) -> int | None:
        """The number of the last batch in a query's commit log."""
        return _last_number(self.checkpoint(query) / "commits")

    def planned(self, query: str) -> int | None:
        """The number of the last batch in a query's offset log."""
        return _last_number(self.checkpoint(query) / "offsets")

    def contents(self) -> list[str]:
        """What `forget` removes, for telling the user."""
        told = []
        if self.checkpoints.exists():
            names = sorted(path.name for path in self.checkpoints.iterdir())
            told.append(f"offsets and open windows of {', '.join(names)}")
        journals = sorted(path.parent.name for path in self.root.glob("nodes/*/journal"))
        if journals:
            told.append(f"what was received and not yet written of {', '.join(journals)}")
        if (self.root / "schemas.json").exists():
            told.append("pinned schemas")
        if self.dead_letters.exists() and any(self.dead_letters.iterdir()):
            told.append("dead letters")
        return told

    def forget(self) -> None:
        """Removes everything but the lock, the log and the history."""
        kept = {"lock", "spark.log", "runs.jsonl", "version"}
        for path in self.root.iterdir():
            if path.name in kept:
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    def _create(self) -> None:
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StateError(
                f"the state directory {self.root} cannot be made: {error.strerror}",
                code="unwritable-state",
                hint="set runtime.state to a directory that can be written",
            ) from error
        ignore = self.root.parent / ".gitignore"
        if self.root.parent.name == ".penstock" and not ignore.exists():
            ignore.write_text("*\n")

    def _acquire(self, file: IO[str], until: float) -> None:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() < until:
                    time.sleep(0.1)
                    continue
                file.seek(0)
                owner = _json(file.read()) or {}
                raise StateError(
                    f"this pipeline is running already (process {owner.get('pid', '?')} on "
                    f"{owner.get('host', '?')}, since {owner.get('since', '?')})",
                    code="already-running",
                    hint="stop it with penstock stop, or give this run another runtime.state",
                ) from None
            return

    def _check_layout(self) -> None:
        found = self.read("version")
        if found is None:
            self.write("version", {"layout": LAYOUT, "penstock": __version__})
        elif found["layout"] > LAYOUT:
            raise StateError(
                f"the state was written by Penstock {found['penstock']}, which is newer",
                code="newer-state",
                hint=f"upgrade Penstock ({__version__} is installed), or start over with --fresh",
            )


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Tells what the disk refuses as a StateError."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise StateError(
            f"the disk is full ({path})" if full else f"cannot write {path}: {error.strerror}",
            code="disk-full" if full else "unwritable-state",
            hint="make room and run again: it resumes" if full else None,
        ) from error


def write_atomically(path: Path, text: str) -> None:
    """Replaces a file: readers see the old or the new content, also after a crash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(f".{path.name}.{os.getpid()}")
    with hidden.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    hidden.replace(path)


def now() -> str:
    """The time, as ISO-8601 in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _last_number(directory: Path) -> int | None:
    try:
        numbers = [int(path.name) for path in directory.iterdir() if path.name.isdigit()]
    except FileNotFoundError:
        return None
    return max(numbers, default=None)
