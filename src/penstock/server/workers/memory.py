"""Memory limits of workers, which run code of users.

An allocation beyond the limit of a process fails. A worker with a Spark session is killed if its
processes exceed their common limit.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from penstock.core.errors import UserError
from penstock.core.units import binary_size_text
from penstock.engine.spark_session.memory import Memory

PROCESS_BYTES = 3 << 30
"""The data of one process."""
JAVA_BYTES = 8 << 30
"""The data of Java, which reserves a large stack for each thread and uses little of it.

Java uses half of `PROCESS_BYTES`. Two pools of Spark, for the removal of blocks, have up to 100
threads each, and are full after some fifteen previews. With their stacks Java reserves 5 GB.
"""
WORKER_BYTES = 5 << 30
"""The memory of all processes of a worker, at most half of that of the machine."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


def limit_data() -> None:
    """Limits the data of this process and of those that it starts.

    The hard limit is that of Java, which `Jvm` raises to it.
    """
    _, found = resource.getrlimit(resource.RLIMIT_DATA)
    soft, hard = (
        limit if found == resource.RLIM_INFINITY else min(found, limit)
        for limit in (PROCESS_BYTES, JAVA_BYTES)
    )
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def worker_limit() -> int:
    """Returns the memory that the processes of a worker may have together."""
    memory = Memory.read()
    return WORKER_BYTES if memory is None else min(WORKER_BYTES, memory.total // 2)


@dataclass(frozen=True)
class ProcessTree:
    """A process and those that it has started, also in sessions of their own."""

    pids: frozenset[int]
    memory: int
    """The bytes that they share with no other process."""

    @classmethod
    def of(cls, root: int) -> ProcessTree:
        """Returns the processes of `root`, as the kernel lists them."""
        known = {each.pid: each for each in _processes()}
        pids, sessions = {root}, {root}
        while found := [
            each for each in known.values()
            if each.pid not in pids and (each.parent in pids or each.session in sessions)
        ]:  # fmt: skip
            pids |= {each.pid for each in found}
            sessions |= {each.session for each in found}
        return cls(frozenset(pids), sum(known[pid].memory for pid in pids & known.keys()))

    def kill(self) -> None:
        """Kills all processes."""
        for pid in self.pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


class _Process(NamedTuple):
    pid: int
    parent: int
    session: int
    memory: int


def _processes() -> Iterator[_Process]:
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            facts = (entry / "stat").read_text().rpartition(")")[2].split()
            _, resident, shared, *_ = (entry / "statm").read_text().split()
            memory = (int(resident) - int(shared)) * _PAGE
            yield _Process(int(entry.name), int(facts[1]), int(facts[3]), memory)


def memory_error(limit: int) -> UserError:
    """Returns the error of a worker that was killed because of its memory."""
    return UserError(
        f"the pipeline needs more than the {binary_size_text(limit)} of a preview",
        code="memory-exceeded",
        hint="Reduce the memory that its functions need, such as data that they keep between rows.",
    )  # fmt: skip
