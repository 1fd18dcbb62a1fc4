"""The SQL of a plan as Spark runs it."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.plan.model import Plan


@dataclass(frozen=True)
class NodeSql:
    """A query or an expression of a transform, in Spark SQL."""

    node: str
    option: str
    sql: str
    written: str
    """The text in the pipeline file."""
    by_batch: bool
    """Whether the query is computed on each batch, not on the stream."""


def explain_sql(plan: Plan) -> tuple[NodeSql, ...]:
    """Returns the SQL of all transforms, in topological order."""
    return tuple(
        NodeSql(
            node.name, ".".join(map(str, text.route)), text.text, text.written,
            node.batch_scoped,
        )
        for node in plan.of("transform")
        for text in node.sql_texts
    )  # fmt: skip
