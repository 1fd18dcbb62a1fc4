"""Facts of a relation: a transform of named DataFrames, known before Spark computes it."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from penstock.sql.column_lineage import ColumnLineage
from penstock.sql.dialect.relation import Output


@dataclass(frozen=True)
class State:
    """The state that a relation keeps of its streams between batches."""

    contents: tuple[str, ...] = ("rows of earlier batches",)
    """Noun phrases for the rows in the state, such as "groups"."""
    version: int = 1
    """The version of the columns of the state. Another version cannot read the state."""
    emits_final_rows: bool = False
    """Whether each row is returned once and never updated, without a watermark."""
    only_joins: bool = False
    """Whether the state serves inner joins alone, whose rows are final at once."""
    simply_aggregates: bool = True
    """Whether the relation is one aggregation whose groups only ever get new rows."""
    sorts_without_limit: bool = False
    """Whether the relation sorts all its rows."""

    def needs_whole_input(self, times: Set[str] | None, grouped: Set[str]) -> bool:
        """Returns whether rows are final at the end of the input only, in spite of watermarks.

        `times` are the columns of the inputs that may have event times or windows, or None if they
        are unknown. `grouped` are the streams among the inputs that have groups upstream.
        """
        return False


@dataclass(frozen=True)
class Relation:
    """Facts of a transform of DataFrames.

    The defaults hold for a transform that computes each row of a single input by itself and keeps
    all columns.
    """

    deterministic: bool = True
    """Whether the same input always gives the same output."""
    filters_by_chance: bool = False
    """Whether a condition differs between two evaluations of the same row."""
    batch_scoped: bool = False
    """Whether the relation must be computed on each batch, not on the stream."""
    incremental: bool = False
    """Whether changes of the output can be computed from changes of the inputs, by Spark's plan of
    the relation over tables."""
    state: State | None = None
    """The state if an input is a stream; None without state."""
    lineage: ColumnLineage = field(default_factory=ColumnLineage)
    """The columns of the output as columns of the inputs."""
    output: Output | None = None
    """The columns of the output that are event times or windows; None: those of a single input."""
    text: str | None = None
    """The query whose rows are the output, if the relation is a query."""
    reads: Mapping[str, int] = field(default_factory=dict)
    """The number of times that the relation reads an input, if it is not 1."""
    calls_windows: bool = False
    """Whether rows are grouped by windows of event time."""
    has_subqueries: bool = False
    """Whether expressions have subqueries of streams."""
    keeps_table_rows: bool = False
    """Whether rows of a table are returned by whether a stream has a match."""
    merges_table_rows: bool = False
    """Whether the rows of a table are merged with those of a stream."""
    replaces_views: bool = False
    """Whether the relation computes the queries of its inputs again, in place of the inputs."""
    hidden_windows: tuple[str, ...] = ()
    """The inputs whose windows the relation compares, and which do not select them."""
