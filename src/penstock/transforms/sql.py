"""The transform `sql`: a query in Spark SQL over the names of other nodes."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, Self

from penstock.core.errors import OptionError
from penstock.core.names import quote_name
from penstock.sdk import Changes, Config, Relation
from penstock.sdk.component import C
from penstock.sdk.sql_text import SqlText, read_sql_text
from penstock.sdk.transform import QueryTransform
from penstock.sql.change_rewrite import rewrite_for_changes
from penstock.sql.dialect.bind import Bound, bind
from penstock.sql.dialect.relation import InputRelation
from penstock.sql.dialect.user_aggregates import collect_rows
from penstock.sql.facts import Facts, parse_facts
from penstock.sql.query_relation import query_relation
from penstock.sql.text.edits import DialectError, Translation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SqlConfig(Config):
    sql: str
    """The query. Other nodes are tables by their names."""
    scope: Literal["stream", "batch"] = "stream"
    """`stream`: over the whole stream, with state for windows and joins. `batch`: over each batch
    by itself, with any SQL."""


class SqlQuery(QueryTransform[C]):
    """The base class of transforms that are a query in SQL."""

    _by_batch = False

    @property
    @abstractmethod
    def text(self) -> str:
        """The query."""

    _inputs: Mapping[str, InputRelation] = MappingProxyType({})

    @cached_property
    def _translated(self) -> Translation:
        """The query in Spark SQL as far as it is known without its inputs."""
        try:
            return self._translate()
        except OptionError:
            return Translation.of(self.text)

    def _translate(self) -> Translation:
        """Returns the query in Spark SQL. Raises OptionError."""
        translation = read_sql_text(("sql",), self.text).translation
        try:
            return collect_rows(translation, self.context.functions)
        except DialectError as error:
            raise error.located(self.text, "sql") from None

    @cached_property
    def _bound(self) -> Bound:
        return Bound(self._translated)

    @cached_property
    def _written_facts(self) -> Facts:
        """The facts of the query without its inputs."""
        return parse_facts(self._translated.text, functions=self.context.functions)

    @cached_property
    def _facts(self) -> Facts:
        """The facts of the query that Spark receives."""
        return parse_facts(self._bound.translation.text, functions=self.context.functions)

    def validate(self) -> None:
        super().validate()
        self._translate()

    def sql_texts(self) -> Sequence[SqlText]:
        return [SqlText(("sql",), self.text, self._bound.translation)]

    def named_inputs(self, known: frozenset[str]) -> frozenset[str]:
        return self._written_facts.relations(known)

    def bind(self, inputs: Mapping[str, InputRelation], *, by_window: bool = True) -> Self:
        bound = copy.copy(self)
        bound.__dict__.pop("_facts", None)
        bound._inputs = inputs
        by_batch = self._by_batch or not by_window
        try:
            bound._bound = bind(self._translated, inputs, by_batch=by_batch)
        except DialectError as error:
            raise error.located(self.text, "sql") from None
        return bound

    def relation(self) -> Relation:
        return query_relation(
            self._written_facts,
            self._facts,
            self._bound,
            self._inputs.values(),
            by_batch=self._by_batch,
        )

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        batch_scoped = self._by_batch or self._bound.by_window
        if self.changes is None or (batch_scoped and self._facts.stateful(frozenset(inputs))):
            return session.sql(self._bound.translation.text)
        return self._relate_changes(inputs, session, self.changes)

    def _relate_changes(
        self, inputs: Mapping[str, DataFrame], session: SparkSession, changes: Changes
    ) -> DataFrame:
        """Returns changes, with the operation as the last column."""
        text, operation = self._bound.translation.text, changes.column
        changing = [name for name, rows in inputs.items() if operation in rows.columns]
        rewritten = rewrite_for_changes(self._facts, changing, operation, complete=changes.complete)
        required = rewritten is not None and rewritten.required
        frame = None if required else session.sql(text)
        if rewritten is not None:
            changed = session.sql(rewritten.sql)
            if frame is None or _other(changed, operation) == _other(frame, operation):
                frame = changed
        assert frame is not None
        if operation not in frame.columns:
            return frame
        return frame.select(*(quote_name(name) for name in [*_other(frame, operation), operation]))


class Sql(SqlQuery[SqlConfig]):
    """A query in Spark SQL over the names of other nodes.

    Parallel by partition. A stateless query (no aggregate, no join of streams) runs on each batch.
    A record on which the query fails becomes a dead letter.

    Of changes, a stateless query keeps the operation column, and an update whose new row does not
    meet WHERE, or has no time for a window, becomes a delete. An aggregate, a join or another query
    with state is an updating query: its rows are changes, too.

    ```yaml
    type: sql
    sql: SELECT * FROM flights WHERE dep_delay > 60
    ```
    """

    @property
    def text(self) -> str:
        return self.config.sql

    @property
    def _by_batch(self) -> bool:  # type: ignore[override]
        return self.config.scope == "batch"


def _other(frame: DataFrame, operation: str) -> list[str]:
    """Returns the names of the columns besides the operation column."""
    return [name for name in frame.columns if name != operation]
