"""Transforms: a function over batches, or a relation over DataFrames."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.sdk.component import C, Component

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Transform(Component[C]):
    """A function over the batches of one input, without memory between batches.

    Runs in tasks. An exception that it raises is the error of a record: the engine finds out of
    which by trying parts of the batch, so `apply` must not have side effects.
    """

    deterministic: bool = False

    @abstractmethod
    def output(self, schema: pa.Schema) -> pa.Schema:
        """The columns of what `apply` gives for rows of `schema`."""

    def open(self) -> None:
        """Called once in each task before the first batch."""

    @abstractmethod
    def apply(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The rows that `batch` becomes; columns as in `output` (cast where Arrow can)."""


class Relation(Component[C]):
    """A transform in Spark's own terms: named DataFrames in, a DataFrame out."""

    def inputs(self, known: frozenset[str]) -> frozenset[str] | None:
        """The names that it reads, `known` nodes or not; None where `from` names them."""
        return None

    def stateful(self, streaming: frozenset[str]) -> bool:
        """Whether it remembers anything from one batch to the next.

        `streaming` names those of its inputs that are streams; the others are static tables.
        """
        return False

    def deterministic(self) -> bool:
        """Whether the same input always gives the same output."""
        return True

    @abstractmethod
    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        """The output for these inputs, which are all streaming or all batches of one query.

        Static tables come as batch DataFrames in both cases. In `session` each input is also a
        temporary view by its name. Raises PlanError; Spark's own errors are translated.
        """
