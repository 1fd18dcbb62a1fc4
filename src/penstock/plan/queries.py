"""Which sinks share a query.

A query is a trunk and all sinks that hang below it. The trunk of a sink is found by walking up
from it to the first node that must be computed as a stream: a source, a transform that remembers
rows between batches, or one that brings several trunks together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from penstock.core.errors import PlanError
from penstock.plan.model import Node, OutputMode, Query
from penstock.sdk import Capability


def make_queries(nodes: Mapping[str, Node], streams: frozenset[str]) -> tuple[Query, ...]:
    """The queries of a plan, named by their trunks. Raises PlanError."""
    trunks = _trunks(nodes, streams)
    groups: dict[tuple[str, OutputMode], list[str]] = {}
    for node in nodes.values():
        if node.kind == "sink":
            trunk = trunks[node.inputs[0]]
            mode = _output_mode(node, trunk, nodes, streams)
            groups.setdefault((trunk, mode), []).append(node.name)
    several = {trunk for trunk, mode in groups if mode == "append"}
    told: set[str] = set()
    queries = []
    for (trunk, mode), sinks in groups.items():
        name = f"{trunk}_updates" if mode == "update" and trunk in several else trunk
        above = upstream(sinks, nodes)
        within = upstream([trunk], nodes) | {trunk}
        members = above | within
        reports = frozenset((members | set(sinks)) - told)
        told |= members
        queries.append(
            Query(
                name=name,
                trunk=trunk,
                within=tuple(n for n in nodes if n in within),
                below=tuple(n for n in nodes if n in above - within),
                sinks=tuple(sinks),
                output_mode=mode,
                reports=reports,
            )
        )
    return tuple(queries)


def _trunks(nodes: Mapping[str, Node], streams: frozenset[str]) -> dict[str, str]:
    """For each stream that is not a sink: the node whose batches it can be computed from."""
    trunks: dict[str, str] = {}
    for node in nodes.values():
        if node.kind == "sink" or node.name not in streams:
            continue
        above = {trunks[name] for name in node.inputs if name in trunks}
        if node.kind == "source" or node.stateful:
            trunks[node.name] = node.name
        elif len(above) == 1:
            (trunks[node.name],) = above
        elif getattr(node.component.config, "scope", "stream") == "batch":
            raise PlanError(
                f'{node.label} has "scope: batch" but its inputs do not come in the same batches: '
                f"they belong to the queries {', '.join(sorted(above))}",
                code="different-batches",
                hint="read nodes of one source with the same state above them, or join as a stream",
                where=node.where,
            )
        else:
            trunks[node.name] = node.name
    return trunks


def upstream(names: Iterable[str], nodes: Mapping[str, Node]) -> set[str]:
    """All nodes that the named ones read, however far away."""
    found: set[str] = set()
    pending = [name for each in names for name in nodes[each].inputs]
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending.extend(nodes[name].inputs)
    return found


def shared(query: Query, nodes: Mapping[str, Node]) -> list[str]:
    """The nodes of which each batch is computed once for several readers."""
    readers = Counter(name for each in (*query.below, *query.sinks) for name in nodes[each].inputs)
    candidates = (query.trunk, *query.below)
    return [name for name in candidates if readers[name] > 1 and not nodes[name].static]


def ends_of(query: Query, nodes: Mapping[str, Node]) -> list[str]:
    """The nodes that are computed for their own sake: what none of them needs, nobody needs.

    Of a trunk that remembers rows it is the trunk, whatever is below: what it remembers must not
    depend on that.
    """
    if nodes[query.trunk].stateful:
        return [query.trunk]
    several = [name for name in shared(query, nodes) if name != query.trunk]
    return sorted({*several, *(nodes[name].inputs[0] for name in query.sinks)})


def _output_mode(
    sink: Node, trunk: str, nodes: Mapping[str, Node], streams: frozenset[str]
) -> OutputMode:
    if not nodes[trunk].stateful or not sink.can(Capability.UPSERT):
        return "append"
    mode = getattr(sink.spec, "mode", None)
    if mode == "upsert" or (mode is None and _never_final(trunk, nodes)):
        return "update"
    return "append"


def _never_final(trunk: str, nodes: Mapping[str, Node]) -> bool:
    """Whether the trunk aggregates and no watermark above it says when a group is complete."""
    watermarks = (getattr(nodes[name].spec, "watermark", None) for name in upstream([trunk], nodes))
    return nodes[trunk].type != "dedupe" and not any(watermarks)
