"""Updating transforms: those whose rows are changes of a result, because it is never final.

A transform is updating if it combines rows of changes, or rows whose result no watermark completes
and that Spark cannot compute as a stream. A transform that drops or repeats changes, as an inner
join with a table does, is updating if the rows before are not known. Transforms that compute each
row by itself are updating downstream of updating ones: their changes are exact, without a primary
key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from penstock.core.errors import OptionError, PlanError
from penstock.plan.final_rows import is_final, updates_as_stream
from penstock.plan.graph import upstream
from penstock.plan.model import Plan
from penstock.plan.node import Node
from penstock.plan.operation_columns import inherit
from penstock.sdk import Capability


def mark_updating(
    nodes: Mapping[str, Node], streams: frozenset[str], *, spark_keeps_groups: bool
) -> dict[str, Node]:
    """Returns the nodes with a mark on the updating ones. `nodes` are in topological order.

    With `spark_keeps_groups` Spark computes groups as a stream where it can, and keeps their state.
    """
    inherited = inherit(nodes, streams)
    bounded = all(
        node.source.is_bounded()
        for name, node in nodes.items()
        if node.kind == "source" and name in streams
    )
    updating: set[str] = set()
    for name, node in nodes.items():
        if not _can_update(node, streams):
            continue
        changes = any(inherited[input_].operation for input_ in node.inputs)
        needs_updates = node.stateful and (
            changes
            or (
                not (bounded or _is_computed_by_spark(node, nodes))
                and (not spark_keeps_groups or not _updates_in_spark(node, nodes, streams))
            )
        )
        follows = not updating.isdisjoint(node.inputs)
        if follows or needs_updates or _drops_changes(inherited[name], inherited):
            updating.add(name)
    updating |= _feeding(updating, nodes, streams)
    updating |= _without_key(updating, inherited, streams)
    return {
        name: _updating(node) if name in updating else replace(node, updating=False)
        for name, node in nodes.items()
    }


def find_hidden_windows(plan: Plan) -> Iterator[PlanError]:
    """Yields an error for each updating transform whose join compares windows it cannot read."""
    for node in plan.of("transform"):
        hidden = node.relation.hidden_windows if node.updating and node.relation else ()
        if hidden:
            names = " and ".join(f'"{name}"' for name in hidden)
            yield PlanError(
                f"{node.label} is never final, and its join compares the windows of {names}, "
                "which are not selected there",
                code="hidden-window",
                hint=f"Select the window in {names}, as in SELECT tumble(...) AS window.",
                where=node.where,
            )


def _updating(node: Node) -> Node:
    """Returns an updating node, whose query reads the rows of its inputs, not their queries."""
    query, relation = node.query_transform, node.relation
    if query is None or relation is None or not relation.replaces_views:
        return replace(node, updating=True)
    inputs = {name: replace(each, text=None) for name, each in node.read.items()}
    try:
        bound = query.bind(inputs, by_window=False)
    except OptionError:
        return replace(node, updating=True, relation=replace(relation, hidden_windows=()))
    facts = replace(bound.relation(), hidden_windows=relation.hidden_windows)
    return replace(node, updating=True, component=bound, relation=facts, read=inputs)


def _drops_changes(node: Node, nodes: Mapping[str, Node]) -> bool:
    """Returns whether changes have no row in the output, whose row before is not known."""
    changing = [nodes[name] for name in node.inputs if nodes[name].operation is not None]
    known = all(each.complete_changes for each in changing) and not node.feeds_conditions
    return bool(changing) and not known and not node.keeps_changes


def _feeding(updating: set[str], nodes: Mapping[str, Node], streams: frozenset[str]) -> set[str]:
    """Returns the nodes that feed updating ones with rows that are never final."""
    above = upstream(updating, nodes)
    origins = {
        name
        for name in above
        if nodes[name].stateful and _can_update(nodes[name], streams) and not is_final(name, nodes)
    }
    between = {
        name
        for name in above
        if _can_update(nodes[name], streams) and origins & upstream([name], nodes)
    }
    return origins | between


def _without_key(
    updating: set[str], nodes: Mapping[str, Node], streams: frozenset[str]
) -> set[str]:
    """Returns the nodes that feed updating ones with changes that their primary key does not name.

    They drop the key, or return several rows of it. Their changes are computed as updating ones,
    from the rows that are replaced upstream, where each row has its key.
    """
    lost: set[str] = set()
    for name, node in nodes.items():
        if name not in updating and _can_update(node, streams) and _loses_key(node, nodes, lost):
            lost.add(name)
    feeding = {input_ for name in updating for input_ in nodes[name].inputs} & lost
    return {
        name for name in feeding | upstream(feeding, nodes) if _can_update(nodes[name], streams)
    }


def _loses_key(node: Node, nodes: Mapping[str, Node], lost: set[str]) -> bool:
    """Returns whether the primary key of changes does not identify the rows of the output."""
    changing = [nodes[name] for name in node.inputs if nodes[name].operation is not None]
    keyed = all(each.primary_key or each.name in lost for each in changing)
    return bool(changing) and keyed and node.operation is not None and not node.primary_key


def _can_update(node: Node, streams: frozenset[str]) -> bool:
    relation = node.relation
    return (
        node.kind == "transform"
        and node.name in streams
        and relation is not None
        and relation.incremental
        and not node.batch_scoped
        and node.watermark is None
    )


def _is_computed_by_spark(node: Node, nodes: Mapping[str, Node]) -> bool:
    """Returns whether Spark computes the final rows of a stateful transform as a stream."""
    assert node.state is not None
    return node.state.only_joins or is_final(node.name, nodes)


def _updates_in_spark(node: Node, nodes: Mapping[str, Node], streams: frozenset[str]) -> bool:
    """Returns whether Spark computes the new results of a stateful transform as a stream."""
    return updates_as_stream(node.name, nodes, streams) and _upserted(node.name, nodes)


def _upserted(name: str, nodes: Mapping[str, Node]) -> bool:
    """Returns whether all sinks downstream replace rows by a key, and no state is downstream."""
    readers = [node for node in nodes.values() if name in node.inputs]
    return all(
        _upserts(reader)
        if reader.kind == "sink"
        else not reader.stateful and _upserted(reader.name, nodes)
        for reader in readers
    )


def _upserts(sink: Node) -> bool:
    format_ = sink.sink.format
    carries = format_ is not None and format_.carries_operations
    mode = getattr(sink.spec, "mode", None)
    return sink.can(Capability.UPSERT) and mode in (None, "upsert") and not carries
