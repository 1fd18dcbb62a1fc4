"""The channel of reports on a cluster: an accumulator, shipped with results of tasks.

Spark passes the values of a task to the driver before the job ends, once the task has succeeded. An
attempt that fails, or whose executor is lost, adds nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pyspark import TaskContext
from pyspark.accumulators import Accumulator, AccumulatorParam

CHANNEL = "penstock.reports"
"""The local property of jobs with the ID of the accumulator. Jobs without it have no channel."""


class Entry(NamedTuple):
    """A file that a task sends to the driver.

    With `durable_below` the file and its folders below that directory are on disk before the batch
    is committed. With `replaces` it takes the place of the file of an earlier computation.
    """

    path: str
    content: bytes
    durable_below: str | None
    replaces: bool


class Entries(AccumulatorParam[list[tuple[Any, ...]]]):
    """The addition of the entries of a task."""

    def zero(self, value: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        return []

    def addInPlace(
        self, first: list[tuple[Any, ...]], second: list[tuple[Any, ...]]
    ) -> list[tuple[Any, ...]]:
        first.extend(second)
        return first


def channel() -> Accumulator[list[tuple[Any, ...]]] | None:
    """Returns the accumulator of this task. None on the driver, and for a local master."""
    from pyspark import accumulators

    context = TaskContext.get()
    number = context.getLocalProperty(CHANNEL) if context is not None else None
    if number is None:
        return None
    # PySpark clears the registry at the start of a task, and sends its values at the end.
    registered: Any = accumulators._accumulatorRegistry.get(int(number))
    if registered is not None:
        return registered  # type: ignore[no-any-return]
    made: Any = accumulators._deserialize_accumulator(int(number), [], Entries())
    return made  # type: ignore[no-any-return]
