"""Warnings about sinks whose rows depend on the division of changes into batches."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.core.errors import PenstockError, PlanError
from penstock.plan.graph import upstream
from penstock.plan.model import Plan


def conditional_sinks_of_results(plan: Plan) -> Iterator[PenstockError]:
    """Yields a warning for each sink that writes changes of a result on a condition.

    An updating query writes one change of a row for each batch, so that the values between are not
    compared with the row of the table.
    """
    for sink in plan.of("sink"):
        if sink.operation is None or not sink.sink.writes_each_row:
            continue
        queries = [
            plan.nodes[name]
            for name in sorted(upstream([sink.name], plan.nodes))
            if plan.nodes[name].updating
        ]
        if queries:
            yield PlanError(
                f"{sink.label} compares rows with those of its table, and {queries[0].label} "
                "writes one change of a row for each batch: the table depends on the batches",
                code="conditional-changes",
                hint="Compare rows in the query, as by max_by(), and remove on_conflict and "
                'update_where. A column that only grows, as {version: ">"}, is exact.',
                where=sink.where,
            )
