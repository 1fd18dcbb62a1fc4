"""Executors of a deployment: their number, cores and memory, as Spark settings."""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.core.errors import UserError
from penstock.core.units import byte_count
from penstock.spec.runtime_models import MIN_HEAP, Runtime

NUMBER, CORES, MEMORY = 2, 1, "2g"
"""The defaults."""
DRIVER_MEMORY = "spark.driver.memory"
_NUMBER_OPTION = "--executors"
_WITHOUT_EXECUTORS = (
    "Run the pipeline on one machine by penstock run, "
    "or in one pod by penstock deploy k8s --executors 0."
)
MIB = 2**20
_SMALLEST_MIB = 512
_BASE_MIB = 512
"""The native memory of the JVM and the process from which Python workers are forked."""
_WORKERS_MIB = 512
"""The Python workers of one task: those of its source, its transforms and its sink."""
_HEAP_SHARE = 0.1
"""Spark's share of the heap for native memory."""
_PROGRAM_MIB = 512
"""The processes of `penstock run` and of its receivers, in a pod without executors."""
_SETTINGS = {"instances": NUMBER, "cores": CORES, "memory": MEMORY}
_OVERHEAD = "spark.executor.memoryOverhead"
_LOCAL_CORES = re.compile(r"local\[(\d+)[],]")


@dataclass(frozen=True)
class Executors:
    """The number of executors, and the cores and the heap of each.

    With the number 0 the driver has these cores and this heap, and runs the tasks itself.
    """

    number: int = NUMBER
    cores: int = CORES
    memory_mib: int = byte_count(MEMORY) // MIB

    @property
    def overhead_mib(self) -> int:
        """The memory of an executor beside its heap, for Java and for Python workers."""
        return _BASE_MIB + self.cores * _WORKERS_MIB + int(self.memory_mib * _HEAP_SHARE)

    @property
    def settings(self) -> dict[str, str]:
        """The settings of the size of an executor, for every cluster."""
        return {
            "spark.executor.cores": str(self.cores),
            "spark.executor.memory": f"{self.memory_mib}m",
        }

    @property
    def local_master(self) -> str:
        """The master of a driver without executors."""
        return f"local[{self.cores}]"

    def pod_mib(self, runtime: Runtime) -> int:
        """Returns the memory of a pod without executors: its heap, and Java and Python beside it.

        Raises UserError for an overhead in `runtime.spark` that is no size.
        """
        own = runtime.spark.get(_OVERHEAD)
        overhead = self.overhead_mib if own is None else _overhead_mib(str(own))
        return self.memory_mib + overhead + _PROGRAM_MIB


def choose_executors(
    runtime: Runtime, number: int | None = None, cores: int | None = None, memory: str | None = None
) -> Executors:
    """Returns the executors of options, else of `runtime.spark`, else of the defaults.

    Raises UserError for a size that Spark rejects.
    """
    given = {"instances": number, "cores": cores, "memory": memory}
    chosen = {
        name: value if value is not None else runtime.spark.get(f"spark.executor.{name}", default)
        for (name, value), default in zip(given.items(), _SETTINGS.values(), strict=True)
    }
    return Executors(
        _count(_NUMBER_OPTION, chosen["instances"]),
        _count("--cores", chosen["cores"]),
        _mebibytes(str(chosen["memory"])),
    )


def is_one_pod(number: int | None) -> bool:
    """Returns whether an option is the number 0. Raises UserError for a negative number."""
    return number is not None and _count(_NUMBER_OPTION, number, least=0) == 0


def no_executors(
    runtime: Runtime, cores: int | None = None, memory: str | None = None
) -> Executors:
    """Returns the cores and the heap of a driver without executors.

    They are those of options, else of the local master and the heap of `runtime`, else the
    defaults. Raises UserError for a size that Spark rejects.
    """
    own_cores = _LOCAL_CORES.match(runtime.master)
    default = int(own_cores[1]) if own_cores is not None else CORES
    heap = driver_heap_mib(runtime) or Executors.memory_mib
    return Executors(
        0,
        _count("--cores", default if cores is None else cores),
        heap if memory is None else _mebibytes(memory),
    )


def driver_heap_mib(runtime: Runtime) -> int | None:
    """Returns the heap of the driver that a pipeline sets; None if it is automatic.

    Raises UserError for a value that is no size, and for one below the minimum of Spark.
    """
    heap = str(runtime.spark.get(DRIVER_MEMORY, runtime.memory))
    return None if heap == "auto" else _size_mib(DRIVER_MEMORY, heap, MIN_HEAP)


def _overhead_mib(text: str) -> int:
    """Returns an overhead, which is a number of MiB without a unit."""
    return int(text) if text.isdecimal() else _size_mib(_OVERHEAD, text)


def _size_mib(name: str, text: str, least: int = 0) -> int:
    """Returns a size, rounded up: a heap of the minimum remains one."""
    try:
        size = byte_count(text)
        if size < least:
            raise ValueError(f"expected at least {least // 10**6} MB")
    except ValueError as error:
        raise UserError(
            f"runtime.spark: {name}: {error}, found {text}", code="invalid-option"
        ) from None
    return -(-size // MIB)


def _count(option: str, value: object, least: int = 1) -> int:
    text = str(value)
    if not text.isdecimal() or int(text) < least:
        raise UserError(
            f"{option}: expected at least {least}, found {text}",
            code="usage",
            hint=_WITHOUT_EXECUTORS if (option, text) == (_NUMBER_OPTION, "0") else None,
        )
    return int(text)


def _mebibytes(text: str) -> int:
    try:
        size = byte_count(text) // MIB
    except ValueError:
        size = 0
    if size < _SMALLEST_MIB:
        raise UserError(
            f"--memory: expected a size of at least {_SMALLEST_MIB} MiB, found {text}",
            code="usage", hint="Write for example --memory 2g.",
        )  # fmt: skip
    return size
