"""Construction of Spark's logical plans from Python."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col
from pyspark.sql.types import DataType, StructType

from penstock.core.names import quote_name
from penstock.engine.catalyst.java_names import java_names
from penstock.engine.catalyst.spark_plan import analyzed_plan, frame_of, scala_items, scala_sequence


@dataclass(frozen=True)
class Catalyst:
    """Construction of logical plans in a session."""

    session: SparkSession

    @cached_property
    def java(self) -> Any:
        """The JVM of the session."""
        return java_names(self.session)

    @cached_property
    def expressions(self) -> Any:
        """Spark's package of expressions."""
        return self.java.org.apache.spark.sql.catalyst.expressions

    @cached_property
    def plans(self) -> Any:
        """Spark's package of logical plans."""
        return self.java.org.apache.spark.sql.catalyst.plans.logical

    def sequence(self, items: Sequence[Any]) -> Any:
        """Returns Java objects as a Scala sequence."""
        return scala_sequence(self.java, items)

    def column(self, expression: Any) -> Column:
        """Returns an expression as a column."""
        return Column(self.java.org.apache.spark.sql.classic.ExpressionUtils.column(expression))

    def expression(self, column: Column) -> Any:
        """Returns a column as an expression."""
        java_column: Any = column._jc
        return self.java.org.apache.spark.sql.classic.ExpressionUtils.expression(java_column)

    def converted(self, column: Column) -> Any:
        """Returns a column as an expression of plans, which Spark's analysis resolves."""
        java_column: Any = column._jc
        classic: Any = self.java.org.apache.spark.sql.classic
        converter = getattr(classic, "ColumnNodeToExpressionConverter$").__getattr__("MODULE$")
        return converter.apply(java_column.node())

    def types(self, expressions: Sequence[Any]) -> list[DataType]:
        """Returns the types of expressions."""
        columns = self.java.org.apache.spark.sql.types.StructType()
        for index, expression in enumerate(expressions):
            columns = columns.add(f"c{index}", expression.dataType())
        return [field.dataType for field in StructType.fromJson(json.loads(columns.json())).fields]

    def frame(self, plan: Any) -> DataFrame:
        """Returns the DataFrame of a plan."""
        return frame_of(plan, self.session)

    def analyzed(self, plan: Any) -> Any:
        """Returns a plan after Spark's analysis, as plans with functions of PySpark need it."""
        return analyzed_plan(self.frame(plan))

    def with_column(self, plan: Any, value: Column, name: str) -> tuple[Any, Any]:
        """Returns a plan with another column, and the attribute of this column."""
        plan = analyzed_plan(self.frame(plan).select("*", value.alias(name)))
        return plan, scala_items(plan.output())[-1]

    def project(self, plan: Any, attributes: Sequence[Any]) -> Any:
        """Returns a plan with only these attributes."""
        return self.plans.Project(self.sequence(attributes), plan)

    def rename(self, columns: Sequence[Any], targets: Sequence[Any]) -> list[Any]:
        """Returns expressions as named expressions with the IDs of other attributes."""
        none = self.java.scala.Option.empty()
        empty = self.sequence([])
        return [
            self.expressions.Alias(column, target.name(), target.exprId(), empty, none, empty)
            for column, target in zip(columns, targets, strict=True)
        ]


def named(name: str) -> Column:
    """Returns a column by its name, whatever its characters."""
    return col(quote_name(name))
