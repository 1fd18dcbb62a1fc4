"""Watermarks that reach a node: Spark drops them at a function over batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.core.errors import PlanError
from penstock.core.units import duration_text
from penstock.plan.model import Plan
from penstock.plan.node import Node
from penstock.spec.node_models import Watermark


def watermarks_above(name: str, nodes: Mapping[str, Node]) -> list[Watermark]:
    """Returns the watermarks that the inputs of a node have."""
    watermarks = (node.watermark for node in _inputs_above(name, nodes))
    return [watermark for watermark in watermarks if watermark is not None]


def _inputs_above(name: str, nodes: Mapping[str, Node]) -> Iterator[Node]:
    """Yields the nodes upstream, up to those with a watermark and to functions over batches."""
    pending, seen = [*nodes[name].inputs], {name}
    while pending:
        node = nodes[pending.pop()]
        if node.name in seen:
            continue
        seen.add(node.name)
        yield node
        if node.watermark is None and node.batch_function is None:
            pending += node.inputs


def find_lost_watermark(name: str, nodes: Mapping[str, Node]) -> PlanError | None:
    """Returns the error of a function that keeps a watermark from a node; None if one reaches it.

    The node requires a watermark.
    """
    if name not in nodes or watermarks_above(name, nodes):
        return None
    for function in _inputs_above(name, nodes):
        if function.batch_function is None:
            continue
        for above in _inputs_above(function.name, nodes):
            if above.watermark is not None:
                return _error(function, above, above.watermark, nodes[name])
    return None


def _error(function: Node, above: Node, watermark: Watermark, reader: Node) -> PlanError:
    delay = duration_text(watermark.delay)
    return PlanError(
        f"{function.label} does not keep the watermark of {above.label}, which {reader.label} "
        "requires",
        code="lost-watermark",
        hint=f"Move the watermark to {function.label}, as in watermark: {{column: "
        f"{watermark.column}, delay: {delay}}}.",
        where=function.where,
    )


def windows_have_watermarks(plan: Plan) -> Iterator[PlanError]:
    """Checks that no function is between a watermark and the windows of a stream."""
    for query in plan.queries:
        for name in query.stream_nodes:
            relation = plan.nodes[name].relation
            if plan.nodes[name].stateful and relation is not None and relation.calls_windows:
                error = find_lost_watermark(name, plan.nodes)
                if error is not None:
                    yield error
