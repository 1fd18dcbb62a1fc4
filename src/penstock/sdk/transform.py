"""Transforms: a function over batches, or a relation over DataFrames."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.sdk.clients import config_digest
from penstock.sdk.component import C, Component

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Route = tuple[str | int, ...]
"""The keys and indexes that lead from a node to a value among its options."""


class Transform(Component[C]):
    """A function over the batches of one input, without state between batches.

    Runs in tasks. An exception is the error of a record: the engine isolates the record by calling
    `apply` with parts of the batch, so `apply` must have no side effects.
    """

    deterministic: bool = False
    """Whether the same input always gives the same output."""

    @abstractmethod
    def output(self, schema: pa.Schema) -> pa.Schema:
        """Returns the columns of the output for rows of `schema`."""

    def open(self) -> None:
        """Prepares the transform. Called once in each worker process, before its first batch.

        The transform stays open between tasks and batches of a run, as long as its `version` is
        the same. `close` is called when the worker process ends.
        """

    def version(self) -> object:
        """Returns a value that changes with the code and the options of the transform."""
        return config_digest(self.config)

    @abstractmethod
    def apply(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yields the output rows of `batch`; columns as in `output`, cast where Arrow can."""


class Relation(Component[C]):
    """A transform in Spark's own terms: named DataFrames in, a DataFrame out."""

    batch_scoped: bool = False
    """Whether the relation must be computed on each batch, not on the stream."""

    emits_final_rows: bool = False
    """Whether a stateful relation emits each row once and never updates it, without a watermark."""

    def inputs(self, known: frozenset[str]) -> frozenset[str] | None:
        """Returns the names that the relation reads, `known` nodes or not; None: as in `from`."""
        return None

    def sql_texts(self) -> Sequence[tuple[Route, str]]:
        """Returns the SQL texts among the options, each with its route below the node.

        Messages of Spark are located in these texts.
        """
        return ()

    def stateful(self, streaming: frozenset[str]) -> bool:
        """Returns whether the relation keeps state between batches.

        `streaming` are the names of the inputs that are streams; the others are static tables.
        """
        return False

    def only_joins(self, streaming: frozenset[str]) -> bool:
        """Returns whether the state serves inner joins alone, whose rows are final at once."""
        return False

    def describe_state(self, streaming: frozenset[str]) -> Sequence[str]:
        """Returns noun phrases for the contents of the state, such as "groups"."""
        return ("rows of earlier batches",)

    def deterministic(self) -> bool:
        """Returns whether the same input always gives the same output."""
        return True

    @abstractmethod
    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        """Returns the output for these inputs: all streaming, or all batches of one query.

        Static tables are batch DataFrames in both cases. In `session` each input is a temporary
        view under its name. Raises PlanError; errors of Spark are translated.
        """
