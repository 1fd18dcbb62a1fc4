"""Steps of a batch of updating transforms: operators with state, and rows that are kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from penstock.engine.updating.checkpoint import checkpoint
from penstock.engine.updating.colocation import Key, colocated
from penstock.engine.updating.files import BucketFiles


class StateTask(Protocol):
    """A function for `mapInArrow` that adds the changes of a batch to the state of an operator."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields the rows that the changes affect, and writes the state after the batch."""

    def of_batch(self, files: BucketFiles, number: int, time: int) -> Self:
        """Returns the task of another batch, in which no rows expire."""


@dataclass(frozen=True)
class StateStep:
    """An operator with state in a batch. The computation of `rows` writes its state.

    The rows of each of the `keys` are in one partition.
    """

    changes: DataFrame
    task: StateTask
    output: StructType
    keys: Sequence[Key]
    rows: DataFrame

    @classmethod
    def of(
        cls, changes: DataFrame, task: StateTask, output: StructType, keys: Sequence[Key]
    ) -> StateStep:
        """Returns the step of a task for changes. Reads no data."""
        rows = colocated(checkpoint(changes.mapInArrow(task, output)), keys)
        return cls(changes, task, output, keys, rows)
