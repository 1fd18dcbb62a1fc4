"""Directory of a host: the requests to start runs, and the ends of these runs.

requests      a named pipe with a line of JSON for each run to start; removed before the host ends
lock          held while a request is written, and while the pipe is removed
host.json     the process and the facts of the host
runs/ID.json  a run of the host; with its end, once it has ended
runs/ID.cancelled  a run whose start is cancelled
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from penstock.core.files.durable import replace_durably
from penstock.core.files.private_files import FILE_MODE, create_directory, open_private

WRITE_SECONDS = 5.0
"""The time in which a host must read a request that is larger than the pipe."""
_PIPE_BYTES = 1 << 20
"""The size of the pipe. A host that starts reads nothing for seconds."""


@dataclass(frozen=True)
class Request:
    """A run to start. `variables` are those of the environment of this pipeline alone."""

    run: str
    file: str
    log_file: str
    fresh: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RunEnd:
    """The end of a run in a host.

    `host_ended` is whether the run ended because Spark ended. `needs_new_host` is whether the run
    did not start because the host has loaded other contents of its Python modules.
    """

    exit_code: int | None = None
    host_ended: bool = False
    needs_new_host: bool = False


class HostDirectory:
    """The directory of one host. The server creates the directory, and both sides use it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def _pipe(self) -> Path:
        return self.root / "requests"

    def create(self) -> int:
        """Creates the directory and its pipe. Returns the pipe, to be the input of the host."""
        create_directory(self.root / "runs")
        os.mkfifo(self._pipe, FILE_MODE)
        pipe = os.open(self._pipe, os.O_RDWR | os.O_NONBLOCK)
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            with suppress(OSError):
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        return pipe

    def write_facts(self, **facts: Any) -> None:
        """Records the process and the facts of the host."""
        replace_durably(self.root / "host.json", json.dumps(facts))

    def facts(self) -> dict[str, Any]:
        """Returns the facts of the host; none before they are known."""
        return _read(self.root / "host.json") or {}

    # Requests

    def send(self, request: Request) -> bool:
        """Writes a request. Returns False if the host has ended or is about to end."""
        line = (json.dumps(asdict(request)) + "\n").encode()
        with suppress(OSError), self._locked():
            pipe = os.open(self._pipe, os.O_WRONLY | os.O_NONBLOCK)
            try:
                self._write_run(request.run, {})
                if _write_all(pipe, line):
                    return True
                self._pipe.unlink()
            finally:
                os.close(pipe)
        self.forget(request.run)
        return False

    def close(self, pipe: int) -> bool:
        """Removes the pipe, unless it has a request. Returns whether it is removed."""
        with self._locked():
            if select.select([pipe], [], [], 0)[0]:
                return False
            self._pipe.unlink(missing_ok=True)
            return True

    def close_now(self) -> None:
        """Removes the pipe. Its requests remain readable."""
        with self._locked():
            self._pipe.unlink(missing_ok=True)

    # Runs

    def end(self, run: str, end: RunEnd) -> None:
        """Records the end of a run."""
        self._write_run(run, asdict(end))

    def has(self, run: str) -> bool:
        """Returns whether a run belongs to this host."""
        return self._run(run).exists()

    def end_of(self, run: str) -> RunEnd | None:
        """Returns the end of a run; None before it, and for a run of another host."""
        facts = _read(self._run(run))
        return RunEnd(**facts) if facts else None

    def cancel(self, run: str) -> None:
        """Requests that the host ends a run without waiting for its thread."""
        open_private(self._cancellation(run), "w").close()

    def is_cancelled(self, run: str) -> bool:
        """Returns whether the end of a run was requested by `cancel`."""
        return self._cancellation(run).exists()

    def forget(self, run: str) -> None:
        """Removes the record of a run."""
        self._cancellation(run).unlink(missing_ok=True)
        self._run(run).unlink(missing_ok=True)

    def remove_if_unused(self) -> None:
        """Removes the directory of a host that has ended, unless it has records of runs."""
        if not any((self.root / "runs").glob("*")):
            shutil.rmtree(self.root, ignore_errors=True)

    def _run(self, run: str) -> Path:
        return self.root / "runs" / f"{run}.json"

    def _cancellation(self, run: str) -> Path:
        return self.root / "runs" / f"{run}.cancelled"

    def _write_run(self, run: str, facts: Mapping[str, Any]) -> None:
        replace_durably(self._run(run), json.dumps(facts))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with open_private(self.root / "lock", "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def parse_request(line: bytes) -> Request:
    """Returns the request of a line."""
    return Request(**json.loads(line))


def _write_all(pipe: int, line: bytes) -> bool:
    """Writes a line, which may be longer than the pipe. Returns False if the host does not read."""
    while line:
        if not select.select([], [pipe], [], WRITE_SECONDS)[1]:
            return False
        line = line[os.write(pipe, line) :]
    return True


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return found
