"""The transform `sql`: a query in Spark SQL over the names of other nodes."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from penstock.core.errors import OptionError
from penstock.sdk import Config, Relation
from penstock.sdk.sql_text import SqlText, read_sql_text
from penstock.sql import facts
from penstock.sql.changes import filters_by_chance, rewrite_for_changes
from penstock.sql.completeness import needs_whole_input, time_columns
from penstock.sql.dialect.bind import Bound, bind
from penstock.sql.dialect.relation import Output
from penstock.sql.dialect.relation import Relation as ReadRelation
from penstock.sql.dialect.user_aggregates import collect_rows
from penstock.sql.equalities import joins_without_equality
from penstock.sql.facts import Facts
from penstock.sql.kept_columns import keyed_rows
from penstock.sql.keyed_rows import KeyedRows
from penstock.sql.table_joins import keeps_constant_rows, keeps_table_rows, merges_table_rows
from penstock.sql.text.edits import DialectError, Translation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SqlConfig(Config):
    sql: str
    """The query. Other nodes are tables by their names."""
    scope: Literal["stream", "batch"] = "stream"
    """`stream`: over the whole stream, with state for windows and joins. `batch`: over each batch
    by itself, with any SQL."""


class Sql(Relation[SqlConfig]):
    """A query in Spark SQL over the names of other nodes.

    Parallel by partition. A stateless query (no aggregate, no join of streams) runs on each batch.
    A record on which the query fails becomes a dead letter.

    Of changes, a stateless query keeps the operation column, and an update whose new row does not
    meet WHERE becomes a delete. An aggregate, a join or another query with state is an updating
    query: its rows are changes, too.

    ```yaml
    type: sql
    sql: SELECT * FROM flights WHERE dep_delay > 60
    ```
    """

    incremental = True
    _relations: Mapping[str, ReadRelation] = MappingProxyType({})

    @cached_property
    def facts(self) -> facts.Facts:
        return facts.parse_facts(self._translated.text, functions=self.context.functions)

    @cached_property
    def _translated(self) -> Translation:
        """The query in Spark SQL as far as it is known without its inputs."""
        try:
            return self._translate()
        except OptionError:
            return Translation.of(self.config.sql)

    def _translate(self) -> Translation:
        """Returns the query in Spark SQL. Raises OptionError."""
        translation = read_sql_text(("sql",), self.config.sql).translation
        try:
            return collect_rows(translation, self.context.functions)
        except DialectError as error:
            raise error.located(self.config.sql, "sql") from None

    @cached_property
    def _bound(self) -> Bound:
        return Bound(self._translated)

    @cached_property
    def _bound_facts(self) -> Facts:
        text = self._bound.translation.text
        return facts.parse_facts(text, functions=self.context.functions)

    @property
    def batch_scoped(self) -> bool:  # type: ignore[override]
        return self.config.scope == "batch" or self._bound.by_window

    def validate(self) -> None:
        super().validate()
        self._translate()

    def count_reads(self, name: str) -> int:
        return max(self._bound_facts.count_reads(name), 1)

    def sql_texts(self) -> Sequence[SqlText]:
        return [SqlText(("sql",), self.config.sql, self._bound.translation)]

    def bind(self, relations: Mapping[str, ReadRelation], *, by_window: bool = True) -> Sql:
        bound = copy.copy(self)
        bound.__dict__.pop("_bound_facts", None)
        bound._relations = relations
        by_batch = self.config.scope == "batch" or not by_window
        try:
            bound._bound = bind(self._translated, relations, by_batch=by_batch)
        except DialectError as error:
            raise error.located(self.config.sql, "sql") from None
        return bound

    def without_views(self) -> Sql:
        if not self._bound.in_place:
            return self
        relations = {name: replace(each, text=None) for name, each in self._relations.items()}
        try:
            plain = self.bind(relations, by_window=False)
        except OptionError:
            return self
        plain.hidden_windows = tuple(sorted(self._bound.hidden))
        return plain

    def times(self, relations: Mapping[str, ReadRelation]) -> Output:
        return self._bound.output

    def view(self) -> str | None:
        return self._translated.text

    def inputs(self, known: frozenset[str]) -> frozenset[str]:
        return self.facts.relations(known)

    def stateful(self, streaming: frozenset[str]) -> bool:
        return not self.batch_scoped and (
            self.facts.stateful(streaming) or keeps_constant_rows(self.facts, streaming)
        )

    def only_joins(self, streaming: frozenset[str]) -> bool:
        facts, streaming = self._bound_facts, self._read(streaming)
        return facts.only_joins(streaming) and not (
            joins_without_equality(facts, streaming) or keeps_constant_rows(facts, streaming)
        )

    @property
    def simply_aggregates(self) -> bool:
        return self._bound_facts.simply_aggregates

    def sorts_without_limit(self) -> bool:
        return self._bound_facts.sorts_without_limit

    def keyed_rows(self, inputs: Mapping[str, KeyedRows]) -> KeyedRows:
        return keyed_rows(self._bound_facts, inputs)

    def needs_whole_input(
        self, streaming: Set[str], times: Set[str] | None, grouped: Set[str]
    ) -> bool:
        columns = self._bound.columns
        return needs_whole_input(
            self._bound_facts, self._read(streaming), self._times_read(times), columns, grouped
        )

    def time_columns(self, times: Set[str]) -> Set[str] | None:
        return time_columns(
            self._bound_facts, self._times_read(times) or set(), self._bound.columns
        )

    def _read(self, streaming: Set[str]) -> frozenset[str]:
        """Returns the streams that the text reads, also in queries in place of views."""
        names = {name.lower() for name in streaming}
        views = [view for name, view in self._bound.in_place.items() if name in names]
        return frozenset(streaming).union(each.name for view in views for each in view.streams())

    def _times_read(self, times: Set[str] | None) -> Set[str] | None:
        """Returns the columns with event times, also of streams that views read."""
        read = [each.output for view in self._bound.in_place.values() for each in view.streams()]
        found = {name for output in read for name in (output.time, *output.windows) if name}
        return None if times is None else {*times, *found}

    def has_subqueries(self, streaming: frozenset[str]) -> bool:
        return self._bound_facts.has_subqueries(self._read(streaming))

    def keeps_table_rows(self, streaming: frozenset[str]) -> bool:
        return keeps_table_rows(self._bound_facts, self._read(streaming))

    def merges_table_rows(self, streaming: frozenset[str]) -> bool:
        return merges_table_rows(self._bound_facts, self._read(streaming))

    def calls_windows(self) -> bool:
        return self._bound_facts.calls_windows

    def describe_state(self, streaming: frozenset[str]) -> Sequence[str]:
        return self.facts.describe_state(streaming) or super().describe_state(streaming)

    def filters_by_chance(self) -> bool:
        return filters_by_chance(self._bound_facts)

    def deterministic(self) -> bool:
        return self.facts.deterministic

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        operation = self.operation_column
        if operation is None or (
            self.batch_scoped and self._bound_facts.stateful(frozenset(inputs))
        ):
            return session.sql(self._bound.translation.text)
        return self._relate_changes(inputs, session, operation)

    def _relate_changes(
        self, inputs: Mapping[str, DataFrame], session: SparkSession, operation: str
    ) -> DataFrame:
        """Returns changes, with the operation as the last column."""
        text = self._bound.translation.text
        changing = [name for name, rows in inputs.items() if operation in rows.columns]
        rewritten = rewrite_for_changes(
            self._bound_facts, changing, operation, complete=self.complete_changes
        )
        required = rewritten is not None and rewritten.required
        frame = None if required else session.sql(text)
        if rewritten is not None:
            changes = session.sql(rewritten.sql)
            if frame is None or _other(changes, operation) == _other(frame, operation):
                frame = changes
        assert frame is not None
        if operation not in frame.columns:
            return frame
        return frame.select(*(f"`{name}`" for name in [*_other(frame, operation), operation]))


def _other(frame: DataFrame, operation: str) -> list[str]:
    """Returns the names of the columns besides the operation column."""
    return [name for name in frame.columns if name != operation]
