"""Finality of the rows of a stateful node: at once, by a watermark, or at the end of the input."""

from __future__ import annotations

from collections.abc import Mapping, Set

from penstock.plan.graph import is_stream, upstream
from penstock.plan.node import Node
from penstock.plan.reached_watermarks import watermarks_above


def is_final(root: str, nodes: Mapping[str, Node]) -> bool:
    """Returns whether rows of a stateful node are final before the end of the input."""
    return not is_never_final(root, nodes) and not needs_whole_input(root, nodes)


def is_never_final(root: str, nodes: Mapping[str, Node]) -> bool:
    """Returns whether the root updates its rows, and no watermark upstream is to complete them."""
    watermarks = (nodes[name].watermark for name in upstream([root], nodes))
    return not _emits_final_rows(nodes[root]) and not any(watermarks)


def updates_rows(root: str, nodes: Mapping[str, Node]) -> bool:
    """Returns whether a stateful root updates its rows without a watermark that completes them."""
    node = nodes[root]
    return node.stateful and not _emits_final_rows(node) and not watermarks_above(root, nodes)


def updates_as_stream(root: str, nodes: Mapping[str, Node], streams: frozenset[str]) -> bool:
    """Returns whether Spark computes the new results of a stateful root as a stream.

    The root is one aggregation, and reads no groups and no outer joins.
    """
    state = nodes[root].state
    if state is None or not state.simply_aggregates:
        return False
    return not any(_has_groups(name, nodes) for name in nodes[root].inputs if name in streams)


def needs_whole_input(root: str, nodes: Mapping[str, Node]) -> bool:
    """Returns whether the watermarks upstream do not complete the rows of the root."""
    node = nodes[root]
    if node.state is None:
        return False
    streaming = frozenset(name for name in node.inputs if is_stream(name, nodes))
    grouped = frozenset(name for name in streaming if _has_groups(name, nodes))
    return node.state.needs_whole_input(_times_of_inputs(node, nodes), grouped)


def is_endless(root: str, nodes: Mapping[str, Node]) -> bool:
    """Returns whether a stream upstream of a node has no end."""
    above = (nodes[name] for name in upstream([root], nodes) if nodes[name].kind == "source")
    return not all(node.static or node.source.is_bounded() for node in above)


def _has_groups(name: str, nodes: Mapping[str, Node]) -> bool:
    """Returns whether a node, or one upstream, has state other than rows that are final at once."""
    return any(
        nodes[each].stateful and not _emits_final_rows(nodes[each])
        for each in upstream([name], nodes) | {name}
    )


def _emits_final_rows(node: Node) -> bool:
    state = node.relation.state if node.relation is not None else None
    return state is not None and state.emits_final_rows


def _times_of_inputs(node: Node, nodes: Mapping[str, Node]) -> frozenset[str] | None:
    """Returns the columns of the inputs that may have event times; None if they are unknown."""
    times: set[str] = set()
    for name in node.inputs:
        columns = _time_columns(nodes[name], nodes)
        if columns is None:
            return None
        times |= columns
    return frozenset(times)


def _time_columns(node: Node, nodes: Mapping[str, Node]) -> Set[str] | None:
    """Returns the columns of a node that may have event times or windows; None if unknown."""
    if node.watermark is not None:
        return {node.watermark.column}
    times = _times_of_inputs(node, nodes)
    # A function over batches drops the watermark.
    return (
        node.relation.lineage.time_columns(times) if node.relation and times is not None else set()
    )
