"""A pipeline that is run and killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import psutil
from pyspark.sql import SparkSession

from penstock import app
from penstock.runtime.handle import RunHandle

MARK = "PENSTOCK_TEST_MARK"
LONGEST = 300.0
PROGRESS = 120.0
"""How long a run that has nothing more to do is left alone."""
TIMEOUT_SECONDS = 20.0


class Run(Protocol):
    """A run in a process, or in this one."""

    def poll(self) -> int | None:
        """Returns the exit code of a run that has ended."""

    def terminate(self) -> None:
        """Requests the end of the run."""

    def wait(self, timeout: float | None = None) -> int:
        """Waits for the end. Returns the exit code."""


@dataclass(frozen=True)
class RunHere:
    """A run in this process."""

    handle: RunHandle

    def poll(self) -> int | None:
        return None if self.handle.running else self.wait()

    def terminate(self) -> None:
        self.handle.stop()

    def wait(self, timeout: float | None = None) -> int:
        outcome = self.handle.wait(timeout)
        assert outcome is not None, f"the run has not ended after {timeout} s"
        return outcome.exit_code


@dataclass
class Victim:
    """A pipeline that is run and killed; whatever its runs start carries a mark."""

    directory: Path
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    def start(self, *program: str) -> subprocess.Popen[bytes]:
        """A run, without waiting."""
        with (self.directory / "run.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, *program],
                cwd=self.directory, env={**os.environ, MARK: self.mark}, stdout=log, stderr=log,
            )  # fmt: skip

    def run(self, *options: str) -> subprocess.Popen[bytes]:
        """A run as a user starts it."""
        return self.start("-m", "penstock", "run", "pipeline.yaml", *options)

    def run_here(self, spark: SparkSession) -> RunHere:
        """A run in this process. Its receivers carry the mark while the environment has it."""
        return RunHere(app.start(self.directory / "pipeline.yaml", spark=spark.newSession()))

    def ends(self, process: Run) -> None:
        """Waits for the end, which must be a good one."""
        code = process.wait(LONGEST)
        assert code == 0, f"ended with code {code}:\n{self.log()[-3000:]}"

    def lives(self, process: subprocess.Popen[bytes], dice: random.Random, least: int = 0) -> int:
        """Waits while it starts, or for some more batches. Returns how many these were to be."""
        batches = dice.choice((0, 1, 1, 2, 3)) + least
        expected = self.commits() + batches
        deadline = time.monotonic() + (PROGRESS if batches else dice.uniform(0.5, 6))
        while process.poll() is None and time.monotonic() < deadline:
            if batches and self.commits() >= expected:
                time.sleep(dice.random())
                break
            time.sleep(0.05)
        return batches

    def kill(self, process: subprocess.Popen[bytes], dice: random.Random) -> str:
        """Kills a run, or the driver alone."""
        os.kill(process.pid, signal.SIGKILL)
        killed = self.finish_off(dice)
        process.wait()
        return killed

    def finish_off(self, dice: random.Random) -> str:
        """Kills the other processes of a run whose driver is killed, or leaves them alone."""
        whole = dice.random() < 0.5
        if whole:
            self.kill_all()
        return "all processes" if whole else "the driver"

    def complete(self) -> bool:
        """Whether there is nothing more to do."""
        return (self.directory / "state/readings/complete").exists()

    def processes(self) -> list[psutil.Process]:
        """All that is alive of the runs, but for the making of the class cache."""
        found = []
        for process in psutil.process_iter():
            try:
                marked = process.environ().get(MARK) == self.mark
                if marked and process.status() != psutil.STATUS_ZOMBIE and not _caches(process):
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def kill_all(self) -> None:
        """Kills every process of the runs."""
        for process in self.processes():
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue

    def left(self) -> list[str]:
        """The processes that do not end by themselves after the driver has."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return [" ".join(command_line(process))[:200] for process in left]

    def commits(self) -> int:
        """How many batches are in the commit logs."""
        logs = self.directory.glob("state/readings/checkpoints/*/commits/[0-9]*")
        return sum(1 for _ in logs)

    def log(self) -> str:
        """What the runs in processes printed."""
        log = self.directory / "run.log"
        return log.read_text() if log.exists() else ""


def command_line(process: psutil.Process) -> list[str]:
    """Returns the words of a process' command line; of a process that has ended, none."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _caches(process: psutil.Process) -> bool:
    words = process.cmdline()
    return "-Xshare:dump" in words or any(word.endswith("classcache.py") for word in words)
