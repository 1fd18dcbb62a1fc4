"""Updating transforms: those whose rows are changes of a result, because it is never final.

A transform is updating if it combines rows of changes, or rows whose result no watermark completes
and that Spark cannot compute as a stream. Transforms that compute each row by itself are updating
downstream of updating ones: their changes are exact, without a primary key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from penstock.plan.changes import inherit
from penstock.plan.model import Node
from penstock.plan.queries import is_final, upstream
from penstock.sdk import Capability


def mark_updating(nodes: Mapping[str, Node], streams: frozenset[str]) -> dict[str, Node]:
    """Returns the nodes with a mark on the updating ones. `nodes` are in topological order."""
    inherited = inherit(nodes, streams)
    bounded = all(
        node.source.is_bounded()
        for name, node in nodes.items()
        if node.kind == "source" and name in streams
    )
    updating: set[str] = set()
    for name, node in nodes.items():
        changes = any(inherited[input_].operation for input_ in node.inputs)
        if _can_update(node, streams) and (
            not updating.isdisjoint(node.inputs)
            or (
                node.stateful
                and (changes or (not bounded and _needs_updates(node, nodes, streams)))
            )
        ):
            updating.add(name)
    updating |= _feeding(updating, nodes, streams)
    return {name: replace(node, updating=name in updating) for name, node in nodes.items()}


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


def _can_update(node: Node, streams: frozenset[str]) -> bool:
    relation = node.relation
    return (
        node.kind == "transform"
        and node.name in streams
        and relation is not None
        and relation.incremental
        and not relation.batch_scoped
        and node.watermark is None
    )


def _needs_updates(node: Node, nodes: Mapping[str, Node], streams: frozenset[str]) -> bool:
    """Returns whether Spark cannot compute a stateful transform of unbounded rows as a stream."""
    assert node.relation is not None
    streaming = frozenset(node.inputs) & streams
    if node.relation.only_joins(streaming) or is_final(node.name, nodes):
        return False
    return not node.relation.simply_aggregates or not _upserted(node.name, nodes)


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
