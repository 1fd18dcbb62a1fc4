"""Transforms: a function over batches, or a relation over DataFrames."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from penstock.sdk.clients import config_digest
from penstock.sdk.component import C, Component
from penstock.sdk.sql_text import SqlText
from penstock.sql.dialect.relation import Output
from penstock.sql.dialect.relation import Relation as ReadRelation
from penstock.sql.keyed_rows import KeyedRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Transform(Component[C]):
    """A function over the batches of one input, without state between batches.

    Over changes the output must have the operation column of the input.

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

    incremental: bool = False
    """Whether changes of the output can be computed from changes of the inputs, by Spark's plan of
    the relation over tables."""

    emits_final_rows: bool = False
    """Whether a stateful relation emits each row once and never updates it, without a watermark."""

    state_version: int = 1
    """The version of the state of a stateful relation. Another version cannot read the state."""

    def inputs(self, known: frozenset[str]) -> frozenset[str] | None:
        """Returns the names that the relation reads, `known` nodes or not; None: as in `from`."""
        return None

    def validate(self) -> None:
        super().validate()
        self.sql_texts()

    def count_reads(self, name: str) -> int:
        """Returns the number of times that the relation reads an input."""
        return 1

    def sql_texts(self) -> Sequence[SqlText]:
        """Returns the SQL texts among the options, as Spark receives them.

        Messages of Spark are located in these texts. Raises OptionError at a part that has no
        translation to Spark SQL.
        """
        return ()

    def bind(self, relations: Mapping[str, ReadRelation], *, by_window: bool = True) -> Relation[C]:
        """Returns the transform of these relations, by name in lower case. Raises OptionError.

        With `by_window` it may be computed on the rows of complete windows, batch by batch.
        """
        return self

    def times(self, relations: Mapping[str, ReadRelation]) -> Output:
        """Returns the columns of the output that are event times or windows.

        By default these are the columns of a single input.
        """
        outputs = [relation.output for relation in relations.values()]
        return outputs[0] if len(outputs) == 1 else Output()

    def view(self) -> str | None:
        """Returns the query whose rows are the output, or None."""
        return None

    def stateful(self, streaming: frozenset[str]) -> bool:
        """Returns whether the relation keeps state between batches.

        `streaming` are the names of the inputs that are streams; the others are static tables.
        """
        return False

    def only_joins(self, streaming: frozenset[str]) -> bool:
        """Returns whether the state serves inner joins alone, whose rows are final at once."""
        return False

    @property
    def simply_aggregates(self) -> bool:
        """Whether the relation is one aggregation whose groups only ever get new rows."""
        return True

    def sorts_without_limit(self) -> bool:
        """Returns whether the relation sorts all its rows."""
        return False

    def keyed_rows(self, inputs: Mapping[str, KeyedRows]) -> KeyedRows:
        """Returns the columns of the output, and those that are proved to hold a primary key.

        By default these are the columns of a single input.
        """
        rows = list(inputs.values())
        return rows[0] if len(rows) == 1 else KeyedRows(origin=())

    def needs_whole_input(
        self, streaming: Set[str], times: Set[str] | None, grouped: Set[str]
    ) -> bool:
        """Returns whether rows are final at the end of the input only, in spite of watermarks.

        `streaming` are the inputs that are streams, and `grouped` those of them that have groups
        upstream. `times` are the columns of the inputs that may have event times or windows, or
        None if they are unknown.
        """
        return False

    def time_columns(self, times: Set[str]) -> Set[str] | None:
        """Returns the columns of the output that may have event times or windows, by name.

        `times` are those of the inputs. None if they are unknown.
        """
        return times

    def has_subqueries(self, streaming: frozenset[str]) -> bool:
        """Returns whether expressions have subqueries of `streaming` inputs."""
        return False

    def keeps_table_rows(self, streaming: frozenset[str]) -> bool:
        """Returns whether rows of a table are returned by whether a stream has a match."""
        return False

    def merges_table_rows(self, streaming: frozenset[str]) -> bool:
        """Returns whether the rows of a table are merged with those of a stream."""
        return False

    hidden_windows: Sequence[str] = ()
    """The inputs whose windows the relation would compare, and which do not select them."""

    def without_views(self) -> Self:
        """Returns the relation of the rows of its inputs, as a query of changes reads them.

        Another relation may compute the queries of its inputs again.
        """
        return self

    def calls_windows(self) -> bool:
        """Returns whether rows are grouped by windows of event time."""
        return False

    def describe_state(self, streaming: frozenset[str]) -> Sequence[str]:
        """Returns noun phrases for the contents of the state, such as "groups"."""
        return ("rows of earlier batches",)

    def filters_by_chance(self) -> bool:
        """Returns whether a condition differs between two evaluations of the same row."""
        return False

    def deterministic(self) -> bool:
        """Returns whether the same input always gives the same output."""
        return True

    operation_column: str | None = None
    """The operation column of the inputs, or None. Set by the planner."""

    complete_changes: bool = False
    """Whether each update and delete of the inputs has the whole row before, as the row `ub` or as
    its own. Set by the planner."""

    def output_operation(self, column: str) -> str | None:
        """Returns the operation column of the output for that of the input; None if dropped.

        `relate` must return this column. For a `stateful` relation it is not called.
        """
        return column

    @abstractmethod
    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        """Returns the output for these inputs: all streaming, or all batches of one query.

        Static tables are batch DataFrames in both cases. In `session` each input is a temporary
        view under its name. Raises PlanError; errors of Spark are translated.
        """
