"""A program in the background, and what its processes take."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

import psutil
from measure import Failed

TIMEOUT_SECONDS = 60.0


class Running:
    """Runs a command from the start of a block to its end, where it is asked to stop."""

    def __init__(self, command: Sequence[str], directory: Path, env: Mapping[str, str]) -> None:
        self._command, self._directory, self._env = command, directory, env
        self._log = directory / "output"

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command, cwd=self._directory, env=self._env, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        left = list(self.members())
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(TIMEOUT_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for each in left:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        self._process.wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    def check(self) -> None:
        """Raises Failed if it has ended."""
        if self._process.poll() is not None:
            tail = self._log.read_text(errors="replace")[-4000:]
            raise Failed(f"{' '.join(self._command)}\nended while it should run:\n{tail}")

    def cpu(self) -> float:
        """The CPU seconds of all its processes so far, those that have ended included.

        A listing may miss a process while another one ends. The largest of three is complete.
        """
        return max(self._listed_cpu() for _ in range(3))

    def _listed_cpu(self) -> float:
        total = 0.0
        for each in self.members():
            with suppress(psutil.NoSuchProcess):
                total += sum(each.cpu_times()[:4])
        return total

    def idle_cpu(self, seconds: float) -> float:
        """The part of a core that it takes for so long, in percent."""
        began, before = time.monotonic(), self.cpu()
        time.sleep(seconds)
        return 100 * (self.cpu() - before) / (time.monotonic() - began)

    def memory(self) -> dict[str, list[float]]:
        """The resident MB of its processes, by what they are."""
        found: dict[str, list[float]] = {}
        for each in self.members():
            with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                found.setdefault(self._role(each), []).append(each.memory_info().rss / 2**20)
        return found

    def members(self) -> Iterator[psutil.Process]:
        """Its processes."""
        with suppress(psutil.NoSuchProcess):
            root = psutil.Process(self._process.pid)
            yield root
            yield from root.children(recursive=True)

    def _role(self, process: psutil.Process) -> str:
        if process.pid == self._process.pid:
            return "driver"
        if Path(process.exe()).name == "java":
            return "JVM"
        parent = process.parent()
        if "zygote" in " ".join(process.cmdline()) and parent and parent.pid == self._process.pid:
            return "warm Python"
        return "worker"
