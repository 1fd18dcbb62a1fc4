"""Executors of a deployment: their number, cores and memory, as Spark settings."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.core.errors import UserError
from penstock.core.units import byte_count
from penstock.spec.runtime_models import Runtime

NUMBER, CORES, MEMORY = 2, 1, "2g"
"""The defaults."""
MIB = 2**20
_SMALLEST_MIB = 512
_BASE_MIB = 512
"""The native memory of the JVM and the process from which Python workers are forked."""
_WORKERS_MIB = 512
"""The Python workers of one task: those of its source, its transforms and its sink."""
_HEAP_SHARE = 0.1
"""Spark's share of the heap for native memory."""
_SETTINGS = {"instances": NUMBER, "cores": CORES, "memory": MEMORY}


@dataclass(frozen=True)
class Executors:
    """The number of executors, and the cores and the heap of each."""

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
        _count("--executors", chosen["instances"]),
        _count("--cores", chosen["cores"]),
        _mebibytes(str(chosen["memory"])),
    )


def _count(option: str, value: object) -> int:
    text = str(value)
    if not text.isdecimal() or int(text) < 1:
        raise UserError(f"{option}: expected at least 1, found {text}", code="usage")
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
