"""Sources that a query reads in several places, as a join of a stream with itself does.

Spark reads each place by itself, and accepts no two of one name. Here they are references to one
common table expression, which Spark reads once: all places have the same rows in a batch.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame

from penstock.engine.catalyst.java_names import java_names
from penstock.engine.catalyst.spark_plan import (
    class_name,
    frame_of,
    map_children,
    scala_items,
    scala_sequence,
)
from penstock.engine.row_checks.checked_plan import without_ctes
from penstock.engine.sources.pushdown import NODE

SHARED_SETTINGS = {"spark.sql.exchange.reuse": "false"}
"""Settings of a query that shares a source: Spark loses the watermark below a reused exchange."""


def read_once(frame: DataFrame) -> DataFrame:
    """Returns a stream that reads each of its sources once. Reads no data.

    Only Spark's start of the query may follow: the stream is not for further analysis.
    """
    plan = without_ctes(frame)
    relations = [leaf for leaf in scala_items(plan.collectLeaves()) if _is_source(leaf)]
    counts = Counter(map(_node, relations))
    if all(count == 1 for count in counts.values()):
        return frame
    session: Any = frame.sparkSession
    sharing = _Sharing(java_names(session), {name for name, count in counts.items() if count > 1})
    shared = sharing.replace(plan)
    definitions = scala_sequence(java_names(session), list(sharing.definitions.values()))
    return frame_of(sharing.plans.WithCTE(shared, definitions), session)


@dataclass
class _Sharing:
    """The replacement of sources by references. `definitions` are by the name of the source."""

    java: Any
    names: set[str]
    definitions: dict[str, Any] = field(default_factory=dict)

    @property
    def plans(self) -> Any:
        return self.java.org.apache.spark.sql.catalyst.plans.logical

    def replace(self, plan: Any) -> Any:
        """Returns a plan with references in place of the sources."""
        if _is_source(plan) and _node(plan) in self.names:
            return self._reference(plan)
        return map_children(plan, self.replace)

    def _reference(self, source: Any) -> Any:
        none = self.java.scala.Option.empty()
        if _node(source) not in self.definitions:
            number = getattr(self.plans, "CTERelationDef$").__getattr__("MODULE$").newId()
            definition = self.plans.CTERelationDef(source, number, none, False, none, False)
            self.definitions[_node(source)] = definition
        number = self.definitions[_node(source)].id()
        return self.plans.CTERelationRef(
            number, True, source.output(), True, none, False, none, False
        )


def _is_source(plan: Any) -> bool:
    return class_name(plan) == "StreamingRelationV2"


def _node(source: Any) -> str:
    return str(source.extraOptions().get(NODE))
