"""Wall-clock time of a command, and CPU seconds of all its processes.

A process of its own starts the command and adopts whatever the command leaves behind (Linux'
"child subreaper"), so that daemons and processes in sessions of their own are waited for and
counted as well: the kernel's accounts of waited-for descendants are complete and exact, where
sampling /proc would miss what lives shorter than its interval. Not counted are only processes
whose parent does not wait for them (SIGCHLD ignored). Elsewhere than on Linux, what outlives
its parent is not counted.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True)
class Cost:
    """`wall` ends with the command itself, `cpu` with the last of its descendants."""

    wall: float
    cpu: float
    largest_mb: float
    """The most memory that any one of the processes had."""


class Failed(Exception):
    """The command failed; the text is the end of what it printed."""


def measure(
    command: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> Cost:
    """Runs a command to its end. Raises Failed."""
    with tempfile.TemporaryDirectory() as scratch:
        report, output = Path(scratch, "report"), Path(scratch, "output")
        with output.open("wb") as log:
            meter = [sys.executable, "-I", __file__, str(report), *command]
            code = subprocess.run(
                meter, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            ).returncode
        if code:
            tail = output.read_text(errors="replace")[-4000:]
            raise Failed(f"{' '.join(command)}\nended with code {code}:\n{tail}")
        return Cost(**json.loads(report.read_text()))


def best(runs: int, once: Callable[[], Cost]) -> Cost:
    """The least time and the least CPU of several runs."""
    costs = [once() for _ in range(runs)]
    return Cost(
        min(cost.wall for cost in costs),
        min(cost.cpu for cost in costs),
        min(cost.largest_mb for cost in costs),
    )


def _main(report: str, *command: str) -> int:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    began = time.perf_counter()
    code = subprocess.Popen(command).wait()
    wall = time.perf_counter() - began
    _wait_for_the_rest()
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    unit = 2**20 if sys.platform == "darwin" else 2**10
    cost = Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / unit)
    Path(report).write_text(json.dumps(asdict(cost)))
    return code if code >= 0 else 128 - code


def _wait_for_the_rest() -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.05)
        except ChildProcessError:
            return
    raise SystemExit(
        f"processes are still running {TIMEOUT_SECONDS:.0f} s after the command has ended"
    )


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
