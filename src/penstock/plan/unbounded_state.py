"""Warnings about state that grows with the input and is never removed."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.core.errors import PenstockError, PlanError
from penstock.plan.graph import upstream
from penstock.plan.model import Plan
from penstock.plan.node import Node
from penstock.plan.reached_watermarks import watermarks_above
from penstock.transforms.last_rows import TYPE as LAST_ROWS


def find_unbounded_state(plan: Plan) -> Iterator[PenstockError]:
    """Yields a warning for each transform that never removes its state of an unbounded stream."""
    streams = plan.streams
    for node in plan.of("transform"):
        if node.state is None or node.state.emits_final_rows:
            continue
        if not _reads_without_end(node, plan, streams):
            continue
        if node.updating:
            removed = plan.spec.runtime.updating_ttl is not None
        else:
            removed = bool(watermarks_above(node.name, plan.nodes))
        if not removed:
            streaming = frozenset(node.inputs) & streams
            state = ", ".join(node.state.contents)
            yield PlanError(
                f"{node.label} keeps {state} for ever: its state grows with the input",
                code="unbounded-state",
                hint=_remedy(node, plan, streaming),
                where=node.where,
            )


def _remedy(node: Node, plan: Plan, streaming: frozenset[str]) -> str:
    assert node.relation is not None
    if node.type == LAST_ROWS:
        return (
            "Write by the primary key of the changes, or set primary_key on the transform upstream "
            "if columns of its output identify a row, or set runtime.updating_ttl to remove keys "
            "that get no new rows."
        )
    uses_windows = node.relation.calls_windows
    if uses_windows and all(_has_watermark(name, plan) for name in streaming):
        parts = "group and join" if len(streaming) > 1 else "group"
        remedy = f"{parts.capitalize()} by a window of a column with a watermark in each subquery"
    elif len(streaming) > 1 and uses_windows:
        remedy = "Set a watermark on each source, and group and join by a window in each subquery"
    elif len(streaming) > 1:
        remedy = "Set a watermark on each source and add a time range to the join"
    elif uses_windows:
        remedy = "Set a watermark on the source"
    else:
        remedy = "Group by a window of a column with a watermark"
    if not node.updating:
        return f"{remedy}."
    return f"{remedy}, or set runtime.updating_ttl to remove keys that get no new rows."


def _has_watermark(name: str, plan: Plan) -> bool:
    return plan.nodes[name].watermark is not None or bool(watermarks_above(name, plan.nodes))


def _reads_without_end(node: Node, plan: Plan, streams: frozenset[str]) -> bool:
    above = upstream([node.name], plan.nodes) & streams
    sources = [plan.nodes[name] for name in above if plan.nodes[name].kind == "source"]
    return any(not source.source.is_bounded() for source in sources)
