"""Kills a run again and again, lets it end, and counts: nothing lost, nothing twice.

    python tests/chaos/kill_anywhere.py [--kills N] [--records N] [--seed N] [--moments]

The run is a `penstock run` of files through a stateless and a windowed branch into files, with bad
records of every kind on the way (see readings.py). It is killed by SIGKILL, at random either the
driver alone or all processes at once, and started again; with `--moments` it is also killed once
at each of the moments of moments.py.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from moments import MOMENTS
from readings import compare, write_readings

MARK = "PENSTOCK_TEST_MARK"
LONGEST = 300.0
PATIENCE = 20.0


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

    def run(self) -> subprocess.Popen[bytes]:
        """A run as a user starts it."""
        return self.start("-m", "penstock", "run", "pipeline.yaml")

    def ends(self, process: subprocess.Popen[bytes]) -> None:
        """Waits for the end, which must be a good one."""
        code = process.wait(LONGEST)
        assert code == 0, f"ended with code {code}:\n{self.log()[-3000:]}"

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

    def left(self) -> list[list[str]]:
        """The processes that do not end by themselves after the driver has."""
        deadline = time.monotonic() + PATIENCE
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return [process.cmdline() for process in left]

    def commits(self) -> int:
        """How many batches are in the commit logs."""
        logs = self.directory.glob("state/readings/checkpoints/*/commits/[0-9]*")
        return sum(1 for _ in logs)

    def log(self) -> str:
        """What the runs printed."""
        return (self.directory / "run.log").read_text()


def _caches(process: psutil.Process) -> bool:
    words = process.cmdline()
    return "-Xshare:dump" in words or any(word.endswith("classcache.py") for word in words)


def kill_at_random(victim: Victim, dice: random.Random) -> str:
    """One run, killed while it starts or some batches later, unless it ends before."""
    process = victim.run()
    batches, pause = dice.choice((0, 1, 1, 2, 3)), dice.random()
    wanted = victim.commits() + batches
    deadline = time.monotonic() + (dice.uniform(0.5, 6) if not batches else LONGEST)
    while victim.commits() < wanted or (not batches and time.monotonic() < deadline):
        if process.poll() is not None or time.monotonic() > deadline:
            break
        time.sleep(0.005)
    time.sleep(pause if batches else 0)
    if process.poll() is not None:
        victim.ends(process)
        return "it had ended"
    whole = dice.random() < 0.5
    os.kill(process.pid, signal.SIGKILL)
    if whole:
        victim.kill_all()
    process.wait()
    return f"{'all processes' if whole else 'the driver'} after {batches} batches"


def kill_at_moment(victim: Victim, moment: str) -> str:
    """One run, killed at a moment."""
    process = victim.start(str(Path(__file__).with_name("moments.py")), moment, "pipeline.yaml")
    code = process.wait(LONGEST)
    if code != -signal.SIGKILL:
        raise AssertionError(f"not killed {moment}; code {code}:\n{victim.log()[-3000:]}")
    return moment


def kill_anywhere(
    directory: Path, kills: int, records: int, seed: int, moments: Sequence[str] = ()
) -> Victim:
    """Kills a run of so many records so many times, and checks what it leaves in the end.

    Raises AssertionError.
    """
    dice = random.Random(seed)
    expected = write_readings(
        directory, records, seed, failing=max(3, records // 10_000), max_files=1 if moments else 3
    )
    victim = Victim(directory)
    try:
        for moment in moments:
            _tell(victim, kill_at_moment(victim, moment))
        for _ in range(kills):
            if not victim.complete():
                _tell(victim, kill_at_random(victim, dice))
        if not victim.complete():
            victim.ends(victim.run())
        assert not (left := victim.left()), f"processes are left: {left}"
        compare(directory, expected)
        assert "Traceback" not in victim.log()
    finally:
        victim.kill_all()
    return victim


def _tell(victim: Victim, killed: str) -> None:
    print(f"killed {killed} ({victim.commits()} batches committed)", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=10, help="at random moments")
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=random.randrange(1000))
    parser.add_argument("--moments", action="store_true", help="also at each named moment")
    given = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="kill-"))
    print(f"seed {given.seed}, in {scratch}", flush=True)
    began = time.monotonic()
    try:
        moments = list(MOMENTS) if given.moments else ()
        kill_anywhere(scratch, given.kills, given.records, given.seed, moments)
    except AssertionError as error:
        raise SystemExit(f"wrong: {error}") from None
    shutil.rmtree(scratch)
    print(f"nothing lost, nothing twice ({time.monotonic() - began:.0f} s)")


if __name__ == "__main__":
    main()
