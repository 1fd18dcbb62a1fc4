"""Temporary views of DataFrames."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pyspark.sql import DataFrame

from penstock.engine.catalyst.java_names import names_of_client


def create_view(frame: DataFrame, name: str) -> None:
    """Creates or replaces a temporary view in the session of a frame. Reads no data.

    Has the effect of `createOrReplaceTempView`. That method runs the command as an SQL execution,
    whose plans and events take longer than the command.
    """
    java_frame: Any = frame._jdf
    _command(java_frame._gateway_client).run(java_frame, name)


@dataclass(frozen=True)
class _CreateView:
    """Spark's command, with the arguments that all temporary views have."""

    command: Any
    identifier: Any
    before_plan: tuple[Any, ...]
    after_plan: tuple[Any, ...]

    def run(self, frame: Any, name: str) -> None:
        """Creates the view of a Java Dataset."""
        command = self.command(
            self.identifier(name), *self.before_plan, frame.logicalPlan(), *self.after_plan
        )
        command.run(frame.sparkSession())


@lru_cache(maxsize=1)
def _command(client: Any) -> _CreateView:
    java: Any = names_of_client(client)
    spark = java.org.apache.spark
    utils, none = spark.api.python.PythonUtils, java.scala.Option.empty()
    empty = utils.toSeq([])
    local = getattr(spark.sql.catalyst.analysis, "LocalTempView$").__getattr__("MODULE$")
    command = spark.sql.execution.command.CreateViewCommand
    schema_mode = getattr(command, "apply$default$11")()
    allow_existing, replace, is_analyzed = False, True, True
    return _CreateView(
        command,
        spark.sql.catalyst.TableIdentifier,
        (empty, none, none, utils.toScalaMap({}), none),
        (allow_existing, replace, local, schema_mode, is_analyzed, empty),
    )
