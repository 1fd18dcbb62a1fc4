"""Assignment of sinks to queries.

A query consists of a root and the sinks downstream of it. The root of a sink is the nearest node
upstream that must be computed as a stream: a source, a stateful transform, or a transform whose
inputs have several roots.

If the input ends, a stateful transform whose rows are never final as a stream, such as a count
without a window, is computed once, from the whole input.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from penstock.core.errors import PlanError, raise_all
from penstock.plan.final_rows import (
    is_endless,
    is_final,
    is_never_final,
    needs_whole_input,
    updates_as_stream,
    updates_rows,
)
from penstock.plan.graph import follows_updating, stream_sources, upstream
from penstock.plan.model import OutputMode, Query
from penstock.plan.node import Node
from penstock.plan.repeated_reads import count_source_reads
from penstock.sdk import Capability

Root = tuple[str, ...]
"""The node that a query computes as a stream, or several nodes whose rows are merged."""
Group = tuple[Root, OutputMode, bool]
"""The root and the output mode of a query, and whether it is updating."""


def make_queries(
    nodes: Mapping[str, Node], streams: frozenset[str], final: Collection[str] = ()
) -> tuple[Query, ...]:
    """Returns the queries of a plan, named by their roots. Raises PlanError.

    `final` are the roots that are computed once, from the whole input (see `find_final_roots`).
    """
    roots, errors = find_roots(nodes, streams)
    raise_all(errors)
    groups: dict[Group, list[str]] = {}
    for node in nodes.values():
        if node.kind == "sink":
            root = roots[node.inputs[0]]
            updating = follows_updating(node, nodes)
            mode = "append" if updating else _output_mode(node, root[0], nodes, streams)
            groups.setdefault((root, mode, updating), []).append(node.name)
    names = _name_queries(groups)
    queries = []
    for (root, mode, updating), sinks in groups.items():
        whole_input = root[0] in final and mode == "append" and not updating
        starts = stream_sources(root[0], nodes, streams) if whole_input else root
        query = _query(names[root, mode, updating], starts, sinks, nodes)
        queries.append(replace(query, updating=updating, output_mode=mode, whole_input=whole_input))
    return _with_reports(queries, nodes)


def _name_queries(groups: Collection[Group]) -> dict[Group, str]:
    """Returns the names of queries. State directories have these names, so each is unique."""
    append_roots = {root for root, mode, updating in groups if mode == "append" and not updating}
    wanted = {}
    for root, mode, updating in groups:
        name = f"{root[0]}_updates" if mode == "update" and root in append_roots else root[0]
        wanted[root, mode, updating] = "_".join([*root, "changes"]) if updating else name
    names: dict[Group, str] = {}
    for group in sorted(groups, key=lambda group: wanted[group] != group[0][0]):
        name = wanted[group]
        while name in names.values():
            name += "_"
        names[group] = name
    return names


def _with_reports(queries: Sequence[Query], nodes: Mapping[str, Node]) -> tuple[Query, ...]:
    """Returns queries with the nodes whose bad records they report, each node by one query.

    Updating queries come first: their sources also check the operations of changes.
    """
    reported: set[str] = set()
    reports = {}
    for query in sorted(queries, key=lambda query: not query.updating):
        members = {*query.stream_nodes, *query.batch_nodes}
        members |= {table for name in members for table in nodes[name].checked_tables}
        reports[query.name] = frozenset((members | set(query.sinks)) - reported)
        reported |= members
    return tuple(replace(query, dead_letter_nodes=reports[query.name]) for query in queries)


def find_final_roots(nodes: Mapping[str, Node], streams: frozenset[str]) -> frozenset[str]:
    """Returns the roots whose rows are final at the end of the input only.

    The input of all streams ends, the root never completes as a stream, sorts its rows or reads a
    source several times, and a sink cannot replace its rows. An inner join of sources is a stream:
    its rows are final.
    """
    sources = [nodes[name] for name in streams if nodes[name].kind == "source"]
    if not all(node.source.is_bounded() for node in sources):
        return frozenset()
    roots, _ = find_roots(nodes, streams)
    appended = {
        roots[node.inputs[0]][0]
        for node in nodes.values()
        if node.kind == "sink"
        and node.inputs[0] in roots
        and not follows_updating(node, nodes)
        and _output_mode(node, roots[node.inputs[0]][0], nodes, streams) == "append"
    }
    reads = count_source_reads(nodes, streams)
    return frozenset(
        root
        for root in appended
        if any(count > 1 for count in reads[root].values())
        or (updates_rows(root, nodes) and not _joins_sources(root, nodes, streams))
        or needs_whole_input(root, nodes)
    )


def _joins_sources(root: str, nodes: Mapping[str, Node], streams: frozenset[str]) -> bool:
    """Returns whether a node is an inner join of several sources, whose rows are final."""
    state = nodes[root].state
    return state is not None and state.only_joins and len(stream_sources(root, nodes, streams)) > 1


def queries_without_sinks(nodes: Mapping[str, Node], streams: frozenset[str]) -> tuple[Query, ...]:
    """Returns a query without sinks for each transform that no node reads.

    These queries are only checked. The nodes of a query are in topological order.
    """
    roots, _ = find_roots(nodes, streams)
    read = {input_ for node in nodes.values() for input_ in node.inputs}
    queries = []
    for name, node in nodes.items():
        if node.kind != "transform" or name in read:
            continue
        root = roots.get(name, (name,))
        updating = follows_updating(node, nodes)
        mode: OutputMode = "append"
        if not updating and (updates_rows(root[0], nodes) or not is_final(root[0], nodes)):
            mode = "update"
        query = replace(_query(name, root, (name,), nodes), updating=updating)
        queries.append(replace(query, sinks=(), output_mode=mode))
    return tuple(queries)


def _query(
    name: str, roots: Sequence[str], ends: Sequence[str], nodes: Mapping[str, Node]
) -> Query:
    """Returns the query of a root and of the sinks `ends`, or of the transform that ends it.

    Several roots are sources, merged in one stream.
    """
    within = upstream(roots, nodes) | set(roots)
    below = (upstream(ends, nodes) | {end for end in ends if nodes[end].kind != "sink"}) - within
    return Query(
        name=name,
        root=", ".join(roots),
        merged=tuple(roots) if len(roots) > 1 else (),
        stream_nodes=tuple(n for n in nodes if n in within),
        batch_nodes=tuple(n for n in nodes if n in below),
        sinks=tuple(ends),
    )


def find_roots(
    nodes: Mapping[str, Node], streams: frozenset[str]
) -> tuple[dict[str, Root], list[PlanError]]:
    """Returns the root of each source and transform that is a stream, and the errors.

    Only updating nodes, and nodes downstream of them, have a root of several nodes. Nodes with
    errors, and the nodes downstream, have no root.
    """
    roots: dict[str, Root] = {}
    errors = []
    for node in nodes.values():
        inputs = [name for name in node.inputs if name in streams]
        if node.kind == "sink" or node.name not in streams:
            continue
        if any(name not in roots for name in inputs):
            continue
        above = {roots[name] for name in inputs}
        if node.kind == "source" or (node.stateful and not node.updating):
            roots[node.name] = (node.name,)
        elif len(above) == 1:
            (roots[node.name],) = above
        elif node.updating or any(follows_updating(nodes[name], nodes) for name in inputs):
            roots[node.name] = tuple(sorted({part for root in above for part in root}))
        elif node.batch_scoped:
            errors.append(_different_batches(node, above))
        else:
            roots[node.name] = (node.name,)
    return roots, errors


def _different_batches(node: Node, roots: Iterable[Root]) -> PlanError:
    is_set = getattr(node.component.config, "scope", None) == "batch"
    if is_set:
        reason, hint = "has scope: batch", "Read nodes of one query, or set scope: stream."
    else:
        reason = "is computed on each batch, when windows are complete (OVER)"
        hint = "Write the rows with OVER to a sink, and join them in another pipeline."
    return PlanError(
        f"{node.label} {reason}, and its inputs belong to different queries: "
        f"{', '.join(sorted(name for root in roots for name in root))}",
        code="different-batches", hint=hint, where=node.where,
    )  # fmt: skip


def shared_nodes(query: Query, nodes: Mapping[str, Node]) -> list[str]:
    """Returns the nodes with several readers, or side outputs, whose batches are computed once."""
    readers = Counter(
        input_ for name in (*query.batch_nodes, *query.sinks) for input_ in nodes[name].inputs
    )
    if query.merged:
        readers[query.root] = len(query.merged)
    candidates = (query.root, *query.batch_nodes)
    return [
        name
        for name in candidates
        if (readers[name] > 1 or name in query.observed)
        and not (name in nodes and nodes[name].static)
    ]


def end_nodes(query: Query, nodes: Mapping[str, Node]) -> list[str]:
    """Returns the nodes that determine the pushdown of a query.

    For a stateful root this is the root alone: its state must not depend on the nodes downstream.
    """
    if query.root in nodes and nodes[query.root].stateful:
        return [query.root]
    shared = [
        name for name in shared_nodes(query, nodes) if name != query.root or name in query.observed
    ]
    return sorted({*shared, *(nodes[name].inputs[0] for name in query.sinks)})


def _output_mode(
    sink: Node, root: str, nodes: Mapping[str, Node], streams: frozenset[str]
) -> OutputMode:
    if not nodes[root].stateful or not sink.can(Capability.UPSERT):
        return "append"
    joins = _joins_sources(root, nodes, streams)
    if not joins and not updates_as_stream(root, nodes, streams):
        return "append"
    mode = getattr(sink.spec, "mode", None)
    final = is_final(root, nodes) if is_endless(root, nodes) else not is_never_final(root, nodes)
    updates = not final and not joins
    return "update" if mode == "upsert" or (mode is None and updates) else "append"
