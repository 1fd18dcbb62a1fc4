"""Steps of a batch of updating transforms: operators with state, and rows that are kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, Self

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from penstock.engine.updating.checkpoint import checkpoint
from penstock.engine.updating.files import BucketFiles


class StateTask(Protocol):
    """A function for `mapInArrow` that adds the changes of a batch to the state of an operator."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields the rows that the changes affect, and writes the state after the batch."""

    def of_batch(self, files: BucketFiles, number: int, time: int) -> Self:
        """Returns the task of another batch, in which no rows expire."""


@dataclass(frozen=True)
class StateStep:
    """An operator with state in a batch. The computation of `rows` writes its state."""

    changes: DataFrame
    task: StateTask
    output: StructType
    rows: DataFrame

    @classmethod
    def of(cls, changes: DataFrame, task: StateTask, output: StructType) -> StateStep:
        """Returns the step of a task for changes. Reads no data."""
        rows = checkpoint(changes.mapInArrow(task, output))
        return cls(changes, task, output, rows)
