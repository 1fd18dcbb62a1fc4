"""The transform `expect`: rules that each row must meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from pydantic import Field

from penstock.core.names import quote_name
from penstock.sdk import Config, DataFrameTransform, Operation, Relation
from penstock.sdk.sql_text import SqlText, read_sql_text
from penstock.sql import determinism

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class ExpectConfig(Config):
    rules: dict[str, str] = Field(min_length=1)
    """The rules by name, each a condition in Spark SQL over the columns of the input."""


class Expect(DataFrameTransform[ExpectConfig]):
    """Keeps the rows that meet all rules.

    A row for which a condition is false or null breaks the rule. The row becomes a dead letter
    (`rule-broken`) whose reason has the names of all broken rules. With `on_error: drop` it is
    dropped, and with `on_error: fail` the run fails.

    Parallel by partition. Of changes, deletes and the rows before updates are not checked. If the
    new row of an update becomes a dead letter, a sink keeps the row before.

    ```yaml
    type: expect
    from: orders
    rules:
      positive amount: amount > 0
      known currency: currency IN ('EUR', 'USD')
    ```
    """

    def sql_texts(self) -> Sequence[SqlText]:
        return [read_sql_text(("rules", name), text) for name, text in self.config.rules.items()]

    def relation(self) -> Relation:
        written = self.config.rules.values()
        functions = self.context.functions
        return Relation(
            deterministic=determinism.deterministic(*written, functions=functions),
            filters_by_chance=any(map(determinism.has_chance, written)),
            incremental=True,
        )

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        from pyspark.sql import functions as f

        (frame,) = inputs.values()
        rules = {str(text.route[-1]): f.expr(text.text) for text in self.sql_texts()}
        is_met = {name: f.coalesce(rule, f.lit(False)) for name, rule in rules.items()}
        broken = [f.when(~met, f.lit(name)) for name, met in is_met.items()]
        reason = f.concat(f.lit("the row breaks rules: "), f.concat_ws(", ", *broken))
        is_valid = f.when(reduce(and_, is_met.values()), f.lit(True))
        condition = is_valid.otherwise(f.raise_error(reason))
        if self.changes is not None:
            unchecked = [Operation.DELETE.value, Operation.UPDATE_BEFORE.value]
            operation = f.col(quote_name(self.changes.column))
            is_unchecked = f.coalesce(operation.isin(unchecked), f.lit(False))
            condition = f.when(is_unchecked, f.lit(True)).otherwise(condition)
        return frame.where(condition)
