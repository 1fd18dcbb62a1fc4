"""Transforms: functions over batches, and relations over DataFrames."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import pyarrow as pa

from penstock.core.errors import PenstockError, RecordError
from penstock.core.location import Location
from penstock.sdk.capability import Capability
from penstock.sdk.clients import config_digest
from penstock.sdk.component import C, Component
from penstock.sdk.format import Format
from penstock.sdk.operations import Changes
from penstock.sdk.record import Carried, Failure
from penstock.sdk.sql_text import SqlText

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.sql.dialect.relation import InputRelation
    from penstock.sql.relation import Relation


class Transform(Component[C]):
    """A function over the batches of one input, without state other than carried rows.

    Over changes the output must have the operation column of the input.

    Runs in tasks. An exception is the error of a record: the engine isolates the record by calling
    `apply` with parts of the batch, so `apply` must have no side effects. A transform that knows
    the failing rows yields their failures instead.
    """

    deterministic: bool = False
    """Whether the same input always gives the same output."""
    whole_batches: bool = False
    """Whether `apply` gets all rows of a batch of the pipeline at once, in one task. An exception
    is then the error of all rows."""
    carries_rows: bool = False
    """Whether `apply` carries rows over to the next batch. Requires `whole_batches`."""
    changes: Changes | None = None
    """The changes that the input has, or None. Set by the planner."""
    code_options: ClassVar[tuple[str, ...]] = ()
    """The options whose texts are code."""
    places: Mapping[str, Sequence[Location]] = {}
    """The location of each line of these texts in the pipeline file. Set by the planner."""

    def warnings(self) -> Sequence[PenstockError]:
        """Returns the assumptions that `penstock check` reports. Called after `validate`."""
        return ()

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
    def apply(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch | Failure | Carried]:
        """Yields the output rows of `batch`; columns as in `output`, cast where Arrow can.

        The row of a `Failure` becomes a dead letter, without a search for it. The row of a
        `Carried` is at the begin of the next batch, too.
        """


class PayloadTransform(Transform[C]):
    """A function over batches that decodes or encodes payloads by the format in its options."""

    capabilities = frozenset({Capability.BYTES})
    format: Format[Any] | None = None
    """The format of the option `format`. Set by the planner, which leaves its type in `config`."""

    def version(self) -> object:
        options = None if self.format is None else config_digest(self.format.config)
        return super().version(), options


class Rejects(Protocol):
    """A destination of rows that a transform rejects: they become dead letters."""

    def __call__(
        self, part: str, rows: Sequence[tuple[pa.RecordBatch, RecordError]]
    ) -> None:  # fmt: skip
        """Rejects the rows of each batch with its error. Called once for a part of a batch of the
        pipeline, which is the same after a restart."""
        ...


class DataFrameTransform(Component[C]):
    """A transform in Spark's own terms: named DataFrames in, a DataFrame out.

    `relation` states the facts by which the planner decides where the transform is computed, and
    whether its rows are changes. The defaults hold for a transform that computes each row of one
    input by itself and keeps all columns.
    """

    changes: Changes | None = None
    """The changes that the inputs have, or None. Set by the planner."""
    rejects_rows: ClassVar[bool] = False
    """Whether tasks of the transform reject rows."""
    rejects: Rejects | None = None
    """The destination of rejected rows. Set by the engine for each query."""

    def validate(self) -> None:
        super().validate()
        self.sql_texts()

    def sql_texts(self) -> Sequence[SqlText]:
        """Returns the SQL texts among the options, as Spark receives them.

        Messages of Spark are located in these texts. Raises OptionError at a part that has no
        translation to Spark SQL.
        """
        return ()

    def relation(self) -> Relation:
        """Returns the facts of the transform. Called once, after `validate`."""
        from penstock.sql.relation import Relation

        return Relation()

    @abstractmethod
    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        """Returns the output for these inputs: all streaming, or all batches of one query.

        Static tables are batch DataFrames in both cases. In `session` each input is a temporary
        view under its name. Raises PlanError; errors of Spark are translated.
        """


class QueryTransform(DataFrameTransform[C]):
    """A transform whose text names its inputs, and whose facts depend on them."""

    @abstractmethod
    def named_inputs(self, known: frozenset[str]) -> frozenset[str]:
        """Returns the names that the text reads, `known` nodes or not."""

    @abstractmethod
    def bind(self, inputs: Mapping[str, InputRelation], *, by_window: bool = True) -> Self:
        """Returns the transform of these inputs, by name in lower case. Raises OptionError.

        With `by_window` it may be computed on the rows of complete windows, batch by batch.
        """
