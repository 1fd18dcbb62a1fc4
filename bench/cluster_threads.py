"""CPU seconds of the threads of Java, by their work, which the names of threads state."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from pathlib import Path

WORK = {
    "tasks": ("Executor task",),
    "queries": ("stream execution", "dag-scheduler", "spark-listener", "Thread-"),
    "compilers": ("C1 Compiler", "C2 Compiler"),
    "collector": ("VM Thread", "GC Thread", "G1 "),
    "network": ("rpc-", "shuffle-", "netty", "dispatcher-", "block-manager", "map-output"),
}
OTHER = "other"
_LENGTH = 15
"""Linux keeps so many characters of a name."""
_TICKS = os.sysconf("SC_CLK_TCK")


def thread_seconds(pid: int) -> Counter[str]:
    """Returns the CPU seconds of the live threads of a process, by their work."""
    found: Counter[str] = Counter()
    for path in Path(f"/proc/{pid}/task").glob("*/stat"):
        with suppress(OSError):
            name, _, values = path.read_text().partition("(")[2].rpartition(")")
            user, system = values.split()[11:13]
            found[_work(name)] += (int(user) + int(system)) / _TICKS
    return found


def _work(name: str) -> str:
    for work, starts in WORK.items():
        if name.startswith(tuple(start[:_LENGTH] for start in starts)):
            return work
    return OTHER
