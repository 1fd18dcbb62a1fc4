"""A query in Spark SQL over the names of other nodes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from penstock.sdk import Config, Relation
from penstock.sql import facts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SqlConfig(Config):
    sql: str
    """The query. Other nodes are tables by their names."""
    scope: Literal["stream", "batch"] = "stream"
    """`stream`: over the whole stream, with windows and joins that last. `batch`: over each batch
    for itself, where any SQL is allowed."""


class Sql(Relation[SqlConfig]):
    """A query in Spark SQL over the names of other nodes.

    Parallel by partition. A query that remembers nothing (no aggregate, no join of streams) runs
    on each batch, so that a record it fails on can be told and goes to the dead letters.

    ```yaml
    type: sql
    sql: SELECT * FROM flights WHERE dep_delay > 60
    ```
    """

    @cached_property
    def facts(self) -> facts.Facts:
        return facts.read(self.config.sql)

    def inputs(self, known: frozenset[str]) -> frozenset[str]:
        return self.facts.relations(known)

    def stateful(self, streaming: frozenset[str]) -> bool:
        return self.config.scope == "stream" and self.facts.stateful(streaming)

    def deterministic(self) -> bool:
        return self.facts.deterministic

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        return session.sql(self.config.sql)
