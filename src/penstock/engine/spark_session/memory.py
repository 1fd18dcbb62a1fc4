"""Memory of the machine, and the choice of the heap and of the state store."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from penstock.core.units import byte_count
from penstock.spec.runtime_models import Runtime

MIB, GIB = 2**20, 2**30
DEFAULT_HEAP = GIB
"""The heap where the memory of the machine is unknown."""
SMALL_HEAP = GIB
"""Below this heap the state of windows and joins is kept in RocksDB."""
MAX_SMALL_MACHINE_HEAP = 3 * GIB
"""The largest automatic heap with three cores and less; one GiB per core with more."""
HEAPS = tuple(512 * MIB * n for n in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32))
"""The automatic heaps, from 512 MiB to 16 GiB."""

StateStore = Literal["memory", "rocksdb"]
_SPARK = b"org.apache.spark.deploy.SparkSubmit"


@dataclass(frozen=True)
class Memory:
    """The memory for this process: of the machine, or of its control group if that is less.

    `available` is neither used nor promised to the heaps of other pipelines.
    """

    total: int
    available: int

    @classmethod
    def read(cls, root: Path = Path("/")) -> Memory | None:
        """Reads the memory from the kernel below `root`; None if it is unknown."""
        machine = _machine(root)
        if machine is None:
            return None
        total, available = machine
        for limit, used in _control_groups(root):
            total, available = min(total, limit), min(available, limit - used)
        return cls(total, max(0, available - sum(_unused_heaps(root))))


@dataclass(frozen=True)
class Resources:
    """The heap of the JVM in bytes, and the state store of a run. `memory` is None if the pipeline
    sets the heap or the memory is unknown.
    """

    heap: int
    state_store: StateStore
    memory: Memory | None = None


def choose_resources(runtime: Runtime, cores: int, memory: Memory | None = None) -> Resources:
    """Returns the resources that the pipeline sets, and chooses those that are automatic.

    `memory` is read from the machine by default.
    """
    explicit = runtime.spark.get("spark.driver.memory", runtime.memory)
    if explicit != "auto":
        heap = byte_count(str(explicit))
        return Resources(heap, _state_store(runtime, heap))
    memory = memory or Memory.read()
    # The state store depends on the whole memory, so that it is the same in each run.
    largest = DEFAULT_HEAP if memory is None else choose_heap(memory.total, memory.total, cores)
    heap = DEFAULT_HEAP if memory is None else choose_heap(memory.total, memory.available, cores)
    return Resources(heap, _state_store(runtime, largest), memory)


def choose_heap(total: int, available: int, cores: int) -> int:
    """Returns a heap of at most a quarter of the memory (half of less than 4 GiB, up to 1 GiB).

    It is at most half of the available memory, because Python workers and the native memory of
    Java need the rest, and at most one GiB per core, because tasks of one core work on one
    partition at a time.
    """
    share = max(total // 4, min(total // 2, DEFAULT_HEAP))
    limit = min(share, available // 2, max(MAX_SMALL_MACHINE_HEAP, cores * GIB))
    return max((heap for heap in HEAPS if heap <= limit), default=HEAPS[0])


def _state_store(runtime: Runtime, heap: int) -> StateStore:
    if runtime.state_store != "auto":
        return runtime.state_store
    return "rocksdb" if heap < SMALL_HEAP else "memory"


def _machine(root: Path) -> tuple[int, int] | None:
    """Returns the total and the available memory of the machine."""
    with suppress(OSError, KeyError, ValueError):
        lines = (root / "proc/meminfo").read_text().splitlines()
        sizes = {name: rest.split()[0] for name, _, rest in (line.partition(":") for line in lines)}
        return int(sizes["MemTotal"]) * 1024, int(sizes["MemAvailable"]) * 1024
    with suppress(OSError, ValueError, AttributeError):
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return total, total
    return None


def _control_groups(root: Path) -> Iterator[tuple[int, int]]:
    """Yields the limit and the used memory of each limited control group of this process."""
    with suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:
                base, names = root / "sys/fs/cgroup", ("memory.max", "memory.current")
            elif "memory" in controllers.split(","):
                base = root / "sys/fs/cgroup/memory"
                names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
            else:
                continue
            group = base / path.lstrip("/")
            for directory in (group, *group.parents):
                with suppress(OSError, ValueError):
                    yield _limit(directory, *names)
                if directory == base:
                    break


def _limit(group: Path, limit: str, used: str) -> tuple[int, int]:
    """Returns limit and used memory. Raises ValueError without a limit."""
    size = int((group / limit).read_text())
    return size, int((group / used).read_text()) - _reclaimable(group)


def _reclaimable(group: Path) -> int:
    """Returns the size of cached files, which the kernel frees on demand."""
    with suppress(OSError):
        for line in (group / "memory.stat").read_text().splitlines():
            name, _, value = line.partition(" ")
            if name in ("inactive_file", "total_inactive_file"):
                return int(value)
    return 0


def _unused_heaps(root: Path) -> Iterator[int]:
    """Yields for each JVM of Spark on this machine the part of its heap that is not yet used."""
    for process in (root / "proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            arguments = (process / "cmdline").read_bytes().split(b"\0")
            if _SPARK not in arguments:
                continue
            heaps = [a.removeprefix(b"-Xmx") for a in arguments if a.startswith(b"-Xmx")]
            resident = int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            yield max(0, byte_count(heaps[-1].decode()) - resident) if heaps else 0
