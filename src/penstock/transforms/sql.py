"""The transform `sql`: a query in Spark SQL over the names of other nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from penstock.sdk import Config, Relation
from penstock.sdk.transform import Route
from penstock.sql import facts

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

    ```yaml
    type: sql
    sql: SELECT * FROM flights WHERE dep_delay > 60
    ```
    """

    @cached_property
    def facts(self) -> facts.Facts:
        return facts.parse_facts(self.config.sql)

    @property
    def batch_scoped(self) -> bool:  # type: ignore[override]
        return self.config.scope == "batch"

    def sql_texts(self) -> Sequence[tuple[Route, str]]:
        return [(("sql",), self.config.sql)]

    def inputs(self, known: frozenset[str]) -> frozenset[str]:
        return self.facts.relations(known)

    def stateful(self, streaming: frozenset[str]) -> bool:
        return self.config.scope == "stream" and self.facts.stateful(streaming)

    def only_joins(self, streaming: frozenset[str]) -> bool:
        return self.facts.only_joins(streaming)

    def describe_state(self, streaming: frozenset[str]) -> Sequence[str]:
        return self.facts.describe_state(streaming) or super().describe_state(streaming)

    def deterministic(self) -> bool:
        return self.facts.deterministic

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        return session.sql(self.config.sql)
