"""The transform `route`: divides rows among named outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from penstock.core.names import node_name_problem, quote_name
from penstock.sdk import Config, DataFrameTransform, Relation
from penstock.sdk.sql_text import SqlText, read_sql_text
from penstock.sql import determinism
from penstock.sql.column_lineage import ChangedColumns, RemainingColumns
from penstock.transforms.filter import filter_changes

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_MATCHES = "_penstock_outputs"
"""The column that holds the outputs of a row, between a router and its outputs."""


class RouteConfig(Config):
    outputs: dict[str, str] = Field(min_length=1)
    """The outputs in order, each with its condition in Spark SQL over the columns of the input."""
    match: Literal["first", "all"] = "first"
    """Whether a row goes to the first output whose condition is true, or to all of them."""
    default: str | None = None
    """The output of the rows that meet no condition. Without it they are dropped."""

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        seen: dict[str, str] = {}
        for name in self.names:
            if problem := node_name_problem(name):
                raise ValueError(f'"{name}" is not a valid name of an output: {problem}')
            if (first := seen.setdefault(name.lower(), name)) != name:
                raise ValueError(f'the outputs "{first}" and "{name}" differ only in case')
        if self.default in self.outputs:
            raise ValueError(f'the output "{self.default}" has a condition, and is the default')
        return self

    @property
    def names(self) -> list[str]:
        """The names of all outputs."""
        return [*self.outputs, *([] if self.default is None else [self.default])]


class Route(DataFrameTransform[RouteConfig]):
    """Divides rows among named outputs, by conditions.

    Other nodes read an output as `from: NAME.OUTPUT`, and SQL as `FROM NAME.OUTPUT`. A condition
    that is null is not met.

    Parallel by partition. Of changes, an update whose new row goes to another output is a delete
    in the outputs that do not receive the new row.

    ```yaml
    type: route
    from: orders
    outputs:
      large: amount > 1000
      foreign: country <> 'DE'
    default: other
    ```
    """

    def sql_texts(self) -> Sequence[SqlText]:
        outputs = self.config.outputs
        return [read_sql_text(("outputs", name), text) for name, text in outputs.items()]

    def relation(self) -> Relation:
        written = self.config.outputs.values()
        return Relation(
            deterministic=determinism.deterministic(*written, functions=self.context.functions),
            filters_by_chance=any(map(determinism.has_chance, written)),
            incremental=True,
            lineage=ChangedColumns((_MATCHES,)),
        )

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        from pyspark.sql.functions import array, coalesce, expr, lit, when

        (frame,) = inputs.values()
        conditions = [coalesce(expr(text.text), lit(False)) for text in self.sql_texts()]
        if self.config.match == "all":
            met: Column = conditions[0]
            for condition in conditions[1:]:
                met |= condition
            return frame.withColumn(_MATCHES, array(*conditions, ~met))
        number: Column = when(conditions[0], lit(0))
        for index, condition in enumerate(conditions[1:], 1):
            number = number.when(condition, lit(index))
        return frame.withColumn(_MATCHES, number.otherwise(lit(len(conditions))))

    def outputs(self) -> dict[str, RouteOutput]:
        """Returns the transforms of the outputs, by name."""
        timeless = determinism.deterministic(*self.config.outputs.values())
        by_first = self.config.match == "first"
        return {
            name: RouteOutput(
                RouteOutputConfig(number=number, by_first=by_first, timeless=timeless), self.context
            )
            for number, name in enumerate(self.config.names)
        }


class RouteOutputConfig(Config):
    number: int
    """The number of the output, from 0."""
    by_first: bool
    """Whether a row has one output."""
    timeless: bool
    """Whether the conditions depend on the values of rows only."""


class RouteOutput(DataFrameTransform[RouteOutputConfig]):
    """The rows of one output of a router."""

    def relation(self) -> Relation:
        return Relation(incremental=True, lineage=RemainingColumns((_MATCHES,)))

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        (frame,) = inputs.values()
        config, matches = self.config, quote_name(_MATCHES)
        number = config.number
        condition = f"{matches} = {number}" if config.by_first else f"{matches}[{number}]"
        if self.changes is None or (self.changes.complete and config.timeless):
            rows = frame.where(condition)
        else:
            operation, timeless = self.changes.column, config.timeless
            rows = filter_changes(frame, condition, operation, timeless=timeless)
        return rows.drop(_MATCHES)
