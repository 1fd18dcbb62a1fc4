"""Processes of runs: their start, and whether they are alive."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from penstock.core.files.private_files import create_directory, open_private
from penstock.core.process_identity import process_identity
from penstock.core.run_id import RUN_ID_VARIABLE
from penstock.runtime.sharing.directory import Request
from penstock.server.connections.profiles import Profiles
from penstock.server.store.pipelines import Start
from penstock.server.supervision.run_log import LOG, OUTPUT
from penstock.server.supervision.shared_runs import Hosts, SharedRun


@dataclass(frozen=True)
class Launcher:
    """Starts of runs. `command` is the command line up to the word `run`.

    The directory of a pipeline in `logs` receives the log and the output of its runs. A run has
    the connections of the server that its file uses, and no others. A run of a share is in one of
    its `hosts`.
    """

    command: Sequence[str]
    environment: Mapping[str, str]
    logs: Path
    profiles: Profiles
    hosts: Hosts

    def start(
        self, id: str, file: Path, run: str, *, fresh: bool, connections: Sequence[str],
        share: str | None = None,
    ) -> RunProcess | SharedRun:  # fmt: skip
        """Starts a run in a session of its own, which outlives the server. Raises OSError."""
        own = self.profiles.environment(None, id, connections) if connections else {}
        logs = self.logs / id
        create_directory(logs)
        if share is not None:
            request = Request(run, str(file), str(logs / LOG), fresh, own)
            return self.hosts.start(share, request)
        own[RUN_ID_VARIABLE] = run
        words = [*self.command, "run", file.name, "--log", "json"]
        words += ["--log-file", str(logs / LOG), *(["--fresh"] if fresh else [])]
        with open_private(logs / OUTPUT, "ab") as output:
            child = subprocess.Popen(
                words, cwd=file.parent, env={**self.environment, **own},
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip
        return RunProcess(run, child.pid, process_identity(child.pid), child)

    def adopt(self, start: Start) -> RunProcess | SharedRun:
        """Returns the run of a start by an earlier server, which may have ended."""
        return self.hosts.find(start) or RunProcess.of(start)


class RunProcess:
    """A process of `penstock run`. `child` is None for a process of an earlier server."""

    host_ended = needs_new_host = False

    def __init__(
        self, run: str, pid: int, identity: str | None, child: subprocess.Popen[bytes] | None = None
    ) -> None:
        self.run, self.pid, self.identity = run, pid, identity
        self._child = child

    @classmethod
    def of(cls, start: Start) -> RunProcess:
        """Returns the process of a start, which may have ended.

        The server may have been killed before it recorded the process; then its run ID finds it.
        """
        pid = start.pid or _leader_of_run(start.run)
        identity = start.identity if start.pid else process_identity(pid) if pid else None
        return cls(start.run, pid or 0, identity)

    @property
    def alive(self) -> bool:
        """Whether the process runs. Another process with its number is not it."""
        if self._child is not None:
            return self._child.poll() is None
        return self.identity is not None and process_identity(self.pid) == self.identity

    @property
    def exit_code(self) -> int | None:
        """The exit code; None for a process that runs, was killed, or is no child."""
        code = self._child.poll() if self._child is not None else None
        return code if code is not None and code >= 0 else None

    def cancel(self) -> None:
        """Ends a start that has not locked the state: kills its process."""
        self.kill()

    def kill(self) -> None:
        """Kills the process and all that it has started in its session."""
        if self.alive:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    def forget(self) -> None:
        """Does nothing: a process of its own has no record."""


def _leader_of_run(run: str) -> int | None:
    """Returns the process that leads the session of a run; None without it."""
    wanted = f"{RUN_ID_VARIABLE}={run}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            pid = int(entry.name)
            if wanted in (entry / "environ").read_bytes().split(b"\0") and os.getsid(pid) == pid:
                return pid
    return None


def new_run_id() -> str:
    """Returns a random ID of a run."""
    return uuid4().hex[:12]
