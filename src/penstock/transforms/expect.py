"""The transform `expect`: rules that each row must meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from penstock.core.names import quote_name
from penstock.sdk import Config, DataFrameTransform, Operation, Relation
from penstock.sdk.sql_text import SqlText, read_sql_text
from penstock.sql import determinism

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


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
        from pyspark.sql.functions import (
            coalesce,
            col,
            concat,
            concat_ws,
            expr,
            lit,
            raise_error,
            when,
        )

        (frame,) = inputs.values()
        texts = self.sql_texts()
        conditions = [coalesce(expr(text.text), lit(False)) for text in texts]
        is_valid: Column = conditions[0]
        for condition in conditions[1:]:
            is_valid &= condition
        if self.changes is not None:
            unchecked = [Operation.DELETE.value, Operation.UPDATE_BEFORE.value]
            operation = col(quote_name(self.changes.column))
            is_valid = coalesce(operation.isin(unchecked), lit(False)) | is_valid
        names = [
            when(~condition, lit(str(text.route[-1])))
            for condition, text in zip(conditions, texts, strict=True)
        ]
        reason = concat(lit("the row breaks rules: "), concat_ws(", ", *names))
        return frame.where(when(is_valid, lit(True)).otherwise(raise_error(reason)))
