"""Hosts of shares: their start, and the runs of pipelines in them."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from penstock.core.files.private_files import create_directory, open_private
from penstock.core.process_identity import process_identity
from penstock.core.version import __version__
from penstock.runtime.sharing.directory import HostDirectory, Request, RunEnd
from penstock.server.store.pipelines import Start
from penstock.server.supervision.run_log import OUTPUT


class SharedRun:
    """A run in the host of a share, as `RunProcess`. `child` is None for a host of an earlier
    server.
    """

    def __init__(
        self, run: str, host: HostDirectory, child: subprocess.Popen[bytes] | None = None
    ) -> None:
        self.run, self._host, self._child = run, host, child
        facts = host.facts()
        self.pid = int(facts.get("pid", 0))
        self.identity: str | None = facts.get("identity")

    @property
    def alive(self) -> bool:
        """Whether the run has not ended, and its host runs."""
        return self._end is None and self._host_alive

    @property
    def exit_code(self) -> int | None:
        """The exit code of the run; None for one that runs, or that ended with its host."""
        return self._end.exit_code if self._end is not None else None

    @property
    def host_ended(self) -> bool:
        """Whether the run ended because the host or its JVM ended."""
        return self._end.host_ended if self._end is not None else not self._host_alive

    @property
    def needs_new_host(self) -> bool:
        """Whether the run must start in another host."""
        return self._end is not None and self._end.needs_new_host

    def cancel(self) -> None:
        """Ends a start that has not locked the state. The other runs of the host continue."""
        with suppress(OSError):
            self._host.cancel(self.run)

    def kill(self) -> None:
        """Kills the host with all its runs."""
        if self._host_alive:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    def forget(self) -> None:
        """Removes the record of the run, and the directory of a host without runs."""
        self._host.forget(self.run)
        if not self._host_alive:
            self._host.remove_if_unused()

    @property
    def _end(self) -> RunEnd | None:
        return self._host.end_of(self.run)

    @property
    def _host_alive(self) -> bool:
        if self._child is not None:
            return self._child.poll() is None
        return self.identity is not None and process_identity(self.pid) == self.identity


class Hosts:
    """Hosts of shares. `command` is the command line of a host without its arguments.

    `directory` has a directory for each host, `logs` one for the output of each share. A run joins
    a host of its share that has this version and this environment.
    """

    def __init__(
        self, directory: Path, command: Sequence[str], environment: Mapping[str, str], logs: Path
    ) -> None:
        self._directory, self._command = directory, command
        self._environment, self._logs = environment, logs
        self._children: dict[Path, subprocess.Popen[bytes]] = {}

    def start(self, share: str, request: Request) -> SharedRun:
        """Starts a run in a host of the share. Raises OSError."""
        for host in self._hosts():
            if self._suits(host, share) and host.send(request):
                return SharedRun(request.run, host, self._children.get(host.root))
        host, pipe = self._start_host(share)
        try:
            if not host.send(request):
                raise OSError(0, "its host does not read requests")
        finally:
            os.close(pipe)
        return SharedRun(request.run, host, self._children[host.root])

    def find(self, start: Start) -> SharedRun | None:
        """Returns the run of a start by an earlier server; None for one in no host."""
        for host in self._hosts():
            if host.has(start.run):
                return SharedRun(start.run, host)
        return None

    def remove_ended(self) -> None:
        """Removes the directories of hosts that have ended and have no records of runs."""
        for root, child in list(self._children.items()):
            if child.poll() is not None:
                del self._children[root]
        for host in self._hosts():
            if not _is_alive(host.facts()):
                host.remove_if_unused()

    def _hosts(self) -> Iterator[HostDirectory]:
        for root in sorted(self._directory.glob("*/")):
            yield HostDirectory(root)

    def _suits(self, host: HostDirectory, share: str) -> bool:
        facts = host.facts()
        if not _is_alive(facts):
            return False
        return bool(facts["share"] == share and facts["key"] == self._key(host))

    def _start_host(self, share: str) -> tuple[HostDirectory, int]:
        """Starts a host in a session of its own. Returns it with its pipe."""
        host = HostDirectory(self._directory / secrets.token_hex(8))
        pipe = host.create()
        child: subprocess.Popen[bytes] | None = None
        try:
            child = self._spawn(host, share, pipe)
            host.write_facts(**self._facts(host, share, child.pid))
        except OSError:
            os.close(pipe)
            if child is not None:
                child.kill()
                child.wait()
            host.remove_if_unused()
            raise
        self._children[host.root] = child
        return host, pipe

    def _spawn(self, host: HostDirectory, share: str, pipe: int) -> subprocess.Popen[bytes]:
        logs = self._logs / f"share-{share}"
        create_directory(logs)
        words = [*self._command, share, str(host.root), str(logs)]
        with open_private(logs / OUTPUT, "ab") as output:
            return subprocess.Popen(
                words, cwd=host.root, env=dict(self._environment), stdin=pipe, stdout=output,
                stderr=output, start_new_session=True,
            )  # fmt: skip

    def _facts(self, host: HostDirectory, share: str, pid: int) -> dict[str, Any]:
        identity = process_identity(pid)
        return {"share": share, "pid": pid, "identity": identity, "key": self._key(host)}

    def _key(self, host: HostDirectory) -> str:
        """Returns a hash of the version and the environment, which may have secrets."""
        facts = [host.root.name, __version__, *self._command, json.dumps(dict(self._environment))]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _is_alive(facts: Mapping[str, Any]) -> bool:
    """Returns whether the process of a host runs; False before its facts are known."""
    return bool(facts) and process_identity(facts["pid"]) == facts["identity"]
